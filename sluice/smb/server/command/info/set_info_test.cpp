#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"

// SET_INFO ([MS-SMB2] 3.3.5.21): names, and whether a file goes with its last open.
// set_info_handlers_test.cpp tests the classes that change a file.

namespace sluice::smb_simulation {
namespace {

using wire::disposition_flags;
using wire::file_information_class;

class set_info_command : public command_test {
protected:
    nt_status dispose(const wire::file_id& file, bool deletes = true) {
        return set_information(file, file_information_class::disposition,
                               wire::disposition_information{.delete_on_close = deletes});
    }
    nt_status rename(const wire::file_id& file, const std::string& target, bool replaces = false) {
        return set_information(file, file_information_class::rename,
                               wire::rename_information{.replace_if_exists = replaces, .target = target});
    }
    [[nodiscard]] nt_status try_open(std::string_view name) {
        auto how = compliant_client::for_everything();
        how.disposition = wire::create_disposition::open;
        return client().try_create(name, how);
    }
};

TEST_F(set_info_command, removes_a_file_with_its_last_open) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(dispose(file), nt_status::success);
    EXPECT_EQ(try_open("f"), nt_status::delete_pending);
    ASSERT_EQ(close(file), nt_status::success);
    EXPECT_EQ(try_open("f"), nt_status::object_name_not_found);
}

TEST_F(set_info_command, keeps_a_file_whose_removal_was_taken_back) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(dispose(file), nt_status::success);
    ASSERT_EQ(dispose(file, false), nt_status::success);
    ASSERT_EQ(close(file), nt_status::success);
    EXPECT_EQ(try_open("f"), nt_status::success);
}

TEST_F(set_info_command, removes_no_directory_that_has_entries) {
    const wire::file_id directory = open_directory("d");
    const wire::file_id inside = open_for(wire::file_all_access, "d\\f");
    EXPECT_EQ(dispose(directory), nt_status::directory_not_empty);
    ASSERT_EQ(dispose(inside), nt_status::success);
    ASSERT_EQ(close(inside), nt_status::success);
    EXPECT_EQ(dispose(directory), nt_status::success);
}

TEST_F(set_info_command, removes_neither_the_root_nor_a_file_without_the_right) {
    EXPECT_EQ(dispose(open_directory("")), nt_status::cannot_delete);
    EXPECT_EQ(dispose(open_for(wire::file_generic_write)), nt_status::access_denied);
}

TEST_F(set_info_command, removes_a_read_only_file_only_if_the_client_ignores_that) {
    auto how = compliant_client::for_everything();
    how.file_attributes = wire::file_attributes::read_only;
    const wire::file_id file = client().create("f", how).file;
    EXPECT_EQ(dispose(file), nt_status::cannot_delete);
    const auto dispose_anyway = [&](disposition_flags flags) {
        return set_information(file, file_information_class::disposition_ex,
                               wire::disposition_information_ex{.flags = flags});
    };
    EXPECT_EQ(dispose_anyway(disposition_flags::delete_file), nt_status::cannot_delete);
    EXPECT_EQ(dispose_anyway(disposition_flags::delete_file | disposition_flags::ignore_read_only),
              nt_status::success);
}

TEST_F(set_info_command, renames_onto_another_file_only_if_it_may_replace_it) {
    ASSERT_EQ(close(open_for(wire::file_all_access, "other")), nt_status::success);
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(rename(file, "other"), nt_status::object_name_collision);
    EXPECT_EQ(rename(file, "other", true), nt_status::success);
    EXPECT_EQ(try_open("f"), nt_status::object_name_not_found);
    EXPECT_EQ(try_open("other"), nt_status::success);
}

TEST_F(set_info_command, gives_a_file_a_second_name) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(set_information(file, file_information_class::link, wire::rename_information{.target = "g"}),
              nt_status::success);
    EXPECT_EQ(try_open("f"), nt_status::success);
    EXPECT_EQ(try_open("g"), nt_status::success);
}

TEST_F(set_info_command, refuses_input_that_is_too_short) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(set(file, file_information_class::disposition, {}), nt_status::info_length_mismatch);
    EXPECT_EQ(set(file, file_information_class::rename, {}), nt_status::invalid_parameter);
}

TEST_F(set_info_command, changes_neither_volumes_nor_quotas) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto set_of = [&](wire::info_type type, wire::filesystem_information_class what) {
        return status_of(
            command::set_info,
            wire::set_info_args{
                .type = type, .information_class = static_cast<std::uint8_t>(what), .file = file});
    };
    using enum wire::filesystem_information_class;
    for (const auto what : {label, control, object_id})
        EXPECT_EQ(set_of(wire::info_type::file_system, what), nt_status::not_supported) << int(what);
    for (const auto what : {sector_size, size, attribute})
        EXPECT_EQ(set_of(wire::info_type::file_system, what), nt_status::invalid_info_class) << int(what);
    EXPECT_EQ(set_of(wire::info_type::quota, label), nt_status::not_supported);
    EXPECT_EQ(set_of(wire::info_type(9), label), nt_status::invalid_parameter);
}

TEST_F(set_info_command, changes_only_the_mode_of_a_pipe) {
    const wire::file_id pipe = open_pipe();
    EXPECT_EQ(set_information(pipe, file_information_class::pipe, wire::pipe_information{}),
              nt_status::success);
    EXPECT_EQ(set(pipe, file_information_class::pipe, {}), nt_status::invalid_parameter);
    EXPECT_EQ(set_information(pipe, file_information_class::position, wire::position_information{}),
              nt_status::not_supported);
}

TEST_F(set_info_command, is_refused_for_an_open_that_has_ended) {
    EXPECT_EQ(dispose(closed_file()), nt_status::file_closed);
}

}  // namespace
}  // namespace sluice::smb_simulation

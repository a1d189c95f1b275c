#include "sluice/smb/server/command/info/set_info_handlers.hpp"

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/file/query_directory.hpp"
#include "sluice/smb/wire/fscc/fscc_directory_information.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/utf16.hpp"

// The classes of [MS-FSCC] 2.4 that SET_INFO changes.
// The server stores a change time that a client sets, because hosts have no call to set it.

namespace sluice::smb_simulation {
namespace {

using smb::wire::basic_information;
using smb::wire::command;
using smb::wire::file_information_class;
using smb::wire::filetime;
using smb::wire::nt_status;

constexpr filetime long_ago(std::uint64_t{126'000'000'000'000'000});  // in 2000
constexpr filetime freeze(~std::uint64_t{0});
constexpr filetime thaw(~std::uint64_t{1});

class change_time : public served {
protected:
    void set(const smb::wire::create_reply& of, const basic_information& what) {
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        encode(writer, what);
        const smb::wire::set_info_args wish{
            .information_class = static_cast<std::uint8_t>(file_information_class::basic),
            .file = of.file,
            .input = *writer.finish()};
        EXPECT_EQ(client().call(command::set_info, wish).status(), nt_status::success);
    }
    basic_information basic(const smb::wire::create_reply& of) {
        const smb::wire::query_info_args question{
            .information_class = static_cast<std::uint8_t>(file_information_class::basic),
            .output_bytes_max = 100,
            .file = of.file};
        const auto answered = client().call(command::query_info, question);
        const auto reply = smb::wire::decode_query_info_reply(answered.message()).value();
        return smb::wire::decode_basic_information(reply.output).value();
    }
    filetime listed(std::string_view name) {
        constexpr auto form = file_information_class::id_both_directory;
        auto how = compliant_client::for_everything();
        how.options = smb::wire::create_options::directory_file;
        const auto root = client().create("", how);
        const std::string pattern = smb::wire::utf16_of(name).value();
        const auto answered = client().call(
            command::query_directory, smb::wire::query_directory_args{
                                          .information_class = smb::wire::directory_class::id_both_directory,
                                          .file = root.file,
                                          .pattern = std::as_bytes(std::span(pattern)),
                                          .output_bytes_max = 1000});
        const auto reply = smb::wire::decode_query_directory_reply(answered.message()).value();
        smb::wire::directory_entry_reader entries(reply.entries, form);
        return entries.next().value().value().fields.changed;
    }
    void write(const smb::wire::create_reply& to) {
        const std::array<std::byte, 3> data{};
        EXPECT_EQ(
            client().call(command::write, smb::wire::write_args{.file = to.file, .data = data}).status(),
            nt_status::success);
    }
};

TEST_F(change_time, that_was_set_is_returned_for_the_open_and_in_listings_until_another_open_changes_it) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    EXPECT_EQ(basic(one).changed, long_ago);
    EXPECT_EQ(listed("f"), long_ago);
    const auto other = client().create("f");
    EXPECT_EQ(basic(other).changed, long_ago);
    write(other);
    EXPECT_GT(basic(one).changed, long_ago);
    EXPECT_GT(listed("f"), long_ago);
}

TEST_F(change_time, that_was_set_or_frozen_stays_whatever_is_done_through_the_open_until_it_is_thawed) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    write(one);
    set(one, {.attributes = smb::wire::file_attributes::hidden});
    EXPECT_EQ(basic(one).changed, long_ago);
    set(one, {.changed = thaw});
    EXPECT_EQ(basic(one).changed, long_ago);
    write(one);
    const filetime moved = basic(one).changed;
    EXPECT_GT(moved, long_ago);
    set(one, {.changed = freeze});
    write(one);
    EXPECT_EQ(basic(one).changed, moved);
}

class kept_time : public change_time {
protected:
    // Writes a second later.
    void write_later(const smb::wire::create_reply& to) {
        where_.clock.advance(std::chrono::seconds(1));
        write(to);
    }
    void close(const smb::wire::create_reply& one) {
        EXPECT_EQ(client().call(command::close, smb::wire::close_args{.file = one.file}).status(),
                  nt_status::success);
    }
    void rename(const smb::wire::create_reply& one, const std::string& target) {
        where_.clock.advance(std::chrono::seconds(1));
        std::array<std::byte, 64> room{};
        byte_writer writer(room);
        EXPECT_TRUE(encode(writer, smb::wire::rename_information{.target = target}));
        const smb::wire::set_info_args wish{
            .information_class = static_cast<std::uint8_t>(file_information_class::rename),
            .file = one.file,
            .input = *writer.finish()};
        EXPECT_EQ(client().call(command::set_info, wish).status(), nt_status::success);
    }
};

TEST_F(kept_time, is_the_one_that_another_open_has_changed_it_to) {
    const auto one = client().create("f");
    const auto other = client().create("f");
    set(one, {.accessed = long_ago, .written = long_ago, .changed = long_ago});
    write_later(one);
    EXPECT_EQ(basic(other).written, long_ago);
    EXPECT_EQ(basic(other).accessed, long_ago);
    write_later(other);
    const basic_information moved = basic(one);
    EXPECT_GT(moved.written, long_ago);
    EXPECT_EQ(moved.accessed, moved.written) << "a write is an access";
    EXPECT_EQ(moved.changed, moved.written);
    write_later(one);
    EXPECT_EQ(basic(other).written, moved.written) << "as the other open has left it";
    EXPECT_EQ(basic(other).accessed, moved.accessed);
    EXPECT_EQ(basic(other).changed, moved.changed);
}

TEST_F(kept_time, changes_again_once_it_is_thawed) {
    const auto one = client().create("f");
    const basic_information made = basic(one);
    set(one, {.accessed = freeze, .written = freeze, .changed = freeze});
    write_later(one);
    EXPECT_EQ(basic(one).written, made.written);
    EXPECT_EQ(basic(one).accessed, made.accessed);
    EXPECT_EQ(basic(one).changed, made.changed);
    set(one, {.accessed = thaw, .written = thaw, .changed = thaw});
    write_later(one);
    EXPECT_GT(basic(one).written, made.written);
    EXPECT_GT(basic(one).accessed, made.accessed);
    EXPECT_GT(basic(one).changed, made.changed);
}

class last_change : public kept_time {};

TEST_F(last_change, that_was_set_stays_with_the_file_after_the_open) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    write_later(one);
    close(one);
    const auto later = client().create("f");
    EXPECT_EQ(basic(later).changed, long_ago);
    write_later(later);
    EXPECT_GT(basic(later).changed, long_ago);
}

TEST_F(last_change, by_a_rename_counts_when_the_open_ends) {
    const auto one = client().create("f");
    const auto other = client().create("f");
    const filetime made = basic(one).changed;
    rename(one, "g");
    EXPECT_EQ(basic(one).changed, made);
    EXPECT_EQ(basic(one).written, made);
    EXPECT_EQ(listed("g"), made);
    close(one);
    EXPECT_GT(basic(other).changed, made);
    EXPECT_GT(listed("g"), made);
    EXPECT_EQ(basic(other).written, made);
}

TEST_F(last_change, by_a_rename_counts_even_if_another_open_has_frozen_it) {
    const auto one = client().create("f");
    const auto other = client().create("f");
    const filetime made = basic(one).changed;
    set(one, {.changed = freeze});
    rename(other, "g");
    EXPECT_EQ(basic(one).changed, made);
    close(one);
    EXPECT_EQ(basic(other).changed, made) << "until the end of the open that has renamed it";
    close(other);
    EXPECT_GT(listed("g"), made);
}

TEST_F(last_change, that_was_set_is_not_changed_by_a_rename) {
    const auto one = client().create("f");
    set(one, {.changed = long_ago});
    rename(one, "g");
    close(one);
    EXPECT_EQ(basic(client().create("g")).changed, long_ago);
}

TEST_F(kept_time, after_2262_is_returned_as_it_was_set) {
    const auto one = client().create("f");
    constexpr filetime far(std::uint64_t{2'650'000'000'000'000'000});  // in 9998
    set(one, {.created = far, .accessed = far, .written = far, .changed = far});
    const basic_information found = basic(one);
    EXPECT_EQ(found.created, far);
    EXPECT_EQ(found.accessed, far);
    EXPECT_EQ(found.written, far);
    EXPECT_EQ(found.changed, far);
}

class changed_file : public command_test {};

TEST_F(changed_file, has_the_end_that_was_set) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    EXPECT_EQ(set_information(file, file_information_class::end_of_file,
                              smb::wire::end_of_file_information{.end_of_file = 4}),
              nt_status::success);
    EXPECT_EQ(content_of(file), "0123");
    EXPECT_EQ(set_information(open_directory(), file_information_class::end_of_file,
                              smb::wire::end_of_file_information{.end_of_file = 4}),
              nt_status::invalid_parameter);
}

TEST_F(changed_file, is_cut_by_an_allocation_that_is_smaller_and_not_grown_by_one_that_is_larger) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    const auto allocate = [&](std::uint64_t bytes) {
        return set_information(file, file_information_class::allocation,
                               smb::wire::allocation_information{.allocation_bytes = bytes});
    };
    EXPECT_EQ(allocate(1000), nt_status::success);
    EXPECT_EQ(content_of(file), "0123456789");
    EXPECT_EQ(allocate(3), nt_status::success);
    EXPECT_EQ(content_of(file), "012");
}

TEST_F(changed_file, has_no_valid_data_beyond_its_end) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    ASSERT_EQ(write(file, "0123"), nt_status::success);
    const auto set_valid = [&](std::uint64_t bytes) {
        return set_information(file, file_information_class::valid_data_length,
                               smb::wire::valid_data_length_information{.valid_bytes = bytes});
    };
    EXPECT_EQ(set_valid(4), nt_status::success);
    EXPECT_EQ(set_valid(5), nt_status::invalid_parameter);
    EXPECT_EQ(set_information(open_directory(), file_information_class::valid_data_length,
                              smb::wire::valid_data_length_information{.valid_bytes = 0}),
              nt_status::invalid_parameter)
        << "a directory has none";
}

TEST_F(changed_file, takes_no_attributes_of_the_other_kind_of_file) {
    using smb::wire::file_attributes;
    const auto set_attributes = [&](const smb::wire::file_id& file, file_attributes wanted) {
        return set_information(file, file_information_class::basic, basic_information{.attributes = wanted});
    };
    EXPECT_EQ(set_attributes(open_for(smb::wire::file_all_access), file_attributes::directory),
              nt_status::invalid_parameter);
    EXPECT_EQ(set_attributes(open_directory(), file_attributes::temporary), nt_status::invalid_parameter);
    EXPECT_EQ(set_attributes(open_directory(), file_attributes::hidden), nt_status::success);
}

TEST_F(changed_file, keeps_the_position_and_the_mode_of_the_open) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    EXPECT_EQ(
        set_information(file, file_information_class::position, smb::wire::position_information{.offset = 7}),
        nt_status::success);
    const auto said = query(file, file_information_class::position);
    EXPECT_EQ(smb::wire::decode_position_information(output_of(said))->offset, 7U);
    EXPECT_EQ(set_information(file, file_information_class::mode, smb::wire::mode_information{.mode = 1}),
              nt_status::invalid_parameter)
        << "an open cannot become one of a directory";
}

TEST_F(changed_file, is_not_changed_by_input_that_is_too_short_or_classes_that_cannot_be_set) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    EXPECT_EQ(set(file, file_information_class::basic, {}), nt_status::info_length_mismatch);
    EXPECT_EQ(set(file, file_information_class::end_of_file, {}), nt_status::info_length_mismatch);
    EXPECT_EQ(set(file, file_information_class::standard, {}), nt_status::invalid_info_class);
    EXPECT_EQ(set(file, file_information_class::short_name, {}), nt_status::info_length_mismatch);
}

}  // namespace
}  // namespace sluice::smb_simulation

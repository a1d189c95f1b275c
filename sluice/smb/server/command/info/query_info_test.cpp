#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

// QUERY_INFO ([MS-SMB2] 3.3.5.20): what it refuses, and how an answer is fitted
// into the client's room.

namespace sluice::smb_simulation {
namespace {

using wire::file_information_class;

class query_info_command : public command_test {
protected:
    nt_status ask(const wire::query_info_args& what) { return status_of(command::query_info, what); }
    nt_status ask_security(const wire::file_id& file, std::uint32_t bytes_max) {
        return ask({.type = wire::info_type::security,
                    .output_bytes_max = bytes_max,
                    .additional_information = wire::bits_of(wire::security_information::owner),
                    .file = file});
    }
};

TEST_F(query_info_command, cuts_a_name_to_the_room_of_the_client) {
    const wire::file_id file = open_for(wire::file_all_access, "a_long_name");
    const auto whole = query(file, file_information_class::name);
    ASSERT_EQ(whole.status(), nt_status::success);
    const auto cut = query(file, file_information_class::name, 10);
    EXPECT_EQ(cut.status(), nt_status::buffer_overflow);
    EXPECT_EQ(output_of(cut).size(), 10U);
    EXPECT_EQ(query(file, file_information_class::name, 7).status(), nt_status::info_length_mismatch);
}

TEST_F(query_info_command, refuses_room_for_less_than_a_structure) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(query(file, file_information_class::basic, 39).status(), nt_status::info_length_mismatch);
    EXPECT_EQ(query(file, file_information_class::basic, 40).status(), nt_status::success);
}

TEST_F(query_info_command, reports_how_much_room_a_security_descriptor_takes) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(ask_security(file, 4096), nt_status::success);
    EXPECT_EQ(ask_security(file, 4), nt_status::buffer_too_small);
}

TEST_F(query_info_command, needs_the_right_that_the_class_asks_for) {
    const wire::file_id file = open_for(access_mask::read_data);
    EXPECT_EQ(query(file, file_information_class::basic).status(), nt_status::access_denied);
    EXPECT_EQ(query(file, file_information_class::full_ea).status(), nt_status::access_denied);
    EXPECT_EQ(ask_security(file, 4096), nt_status::access_denied);
    EXPECT_EQ(query(file, file_information_class::standard).status(), nt_status::success);
}

TEST_F(query_info_command, refuses_types_and_classes_that_it_does_not_have) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(query(file, file_information_class(200)).status(), nt_status::invalid_info_class);
    EXPECT_EQ(ask({.type = wire::info_type::quota, .output_bytes_max = 100, .file = file}),
              nt_status::not_supported);
    EXPECT_EQ(ask({.type = wire::info_type(9), .output_bytes_max = 100, .file = file}),
              nt_status::invalid_parameter);
}

TEST_F(query_info_command, refuses_more_output_than_its_credits_pay_for) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(query(file, file_information_class::basic, 65'537).status(), nt_status::invalid_parameter);
}

TEST_F(query_info_command, is_refused_for_an_open_that_has_ended) {
    EXPECT_EQ(query(closed_file(), file_information_class::basic).status(), nt_status::file_closed);
}

TEST_F(query_info_command, is_refused_for_the_volume_of_a_pipe) {
    EXPECT_EQ(ask({.type = wire::info_type::file_system,
                   .information_class = 1,
                   .output_bytes_max = 100,
                   .file = open_pipe()}),
              nt_status::invalid_info_class);
}

}  // namespace
}  // namespace sluice::smb_simulation

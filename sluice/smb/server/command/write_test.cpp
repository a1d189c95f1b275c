#include "sluice/smb/server/command/command_testing.hpp"

// WRITE ([MS-SMB2] 3.3.5.13).

namespace sluice::smb_simulation {
namespace {

constexpr std::uint64_t at_end_of_file = ~std::uint64_t{0};

class write_command : public command_test {};

TEST_F(write_command, answers_how_many_bytes_it_stored) {
    const wire::file_id file = open_for(wire::file_all_access);
    const std::string_view text = "0123456789";
    const auto said = client().call(
        command::write,
        wire::write_args{.file = file, .offset_bytes = 3, .data = std::as_bytes(std::span(text))});
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_write_reply(said.message())->count_bytes, 10U);
    EXPECT_EQ(content_of(file), std::string(3, '\0') + "0123456789");
}

TEST_F(write_command, of_no_bytes_leaves_the_file_as_it_is) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(write(file, "", 100), nt_status::success);
    EXPECT_EQ(content_of(file), "");
}

TEST_F(write_command, with_the_right_to_append_alone_goes_to_the_end_of_the_file) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(write(file, "one"), nt_status::success);
    EXPECT_EQ(write(open_for(access_mask::append_data), " two", at_end_of_file), nt_status::success);
    EXPECT_EQ(content_of(file), "one two");
    EXPECT_EQ(write(file, "three", at_end_of_file), nt_status::invalid_parameter)
        << "an open with the right to write names the offset";
}

TEST_F(write_command, refuses_opens_that_cannot_be_written) {
    EXPECT_EQ(write(closed_file(), "x"), nt_status::file_closed);
    EXPECT_EQ(write(open_directory(), "x"), nt_status::invalid_device_request);
    EXPECT_EQ(write(open_for(wire::file_generic_read), "x"), nt_status::access_denied);
}

TEST_F(write_command, refuses_offsets_beyond_the_largest_file) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(write(file, "x", INT64_MAX), nt_status::invalid_parameter);
    EXPECT_EQ(write(file, "x", std::uint64_t{INT64_MAX} + 1), nt_status::invalid_parameter);
}

TEST_F(write_command, has_no_rdma_channel) {
    EXPECT_EQ(status_of(command::write, wire::write_args{.file = open_for(wire::file_all_access),
                                                         .channel = wire::io_channel::rdma_v1}),
              nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation

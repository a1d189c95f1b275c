#include "sluice/smb/server/command/command_testing.hpp"

// READ ([MS-SMB2] 3.3.5.12): what it refuses, and with which status. data_path_test.cpp tests
// the ways of the data.

namespace sluice::smb_simulation {
namespace {

class read_command : public command_test {
protected:
    nt_status read(const wire::read_args& how) { return status_of(command::read, how); }
};

TEST_F(read_command, answers_the_bytes_that_the_file_has) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    const auto said =
        client().call(command::read, wire::read_args{.file = file, .offset_bytes = 7, .length_bytes = 100});
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_read_reply(said.message())->data.size(), 3U);
}

TEST_F(read_command, reports_the_end_of_the_file_instead_of_no_bytes) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    EXPECT_EQ(read({.file = file, .offset_bytes = 10, .length_bytes = 1}), nt_status::end_of_file);
    EXPECT_EQ(read({.file = file, .offset_bytes = 5, .length_bytes = 10, .minimum_bytes = 6}),
              nt_status::end_of_file);
    EXPECT_EQ(read({.file = file, .offset_bytes = 5, .length_bytes = 10, .minimum_bytes = 5}),
              nt_status::success);
    EXPECT_EQ(read({.file = file, .offset_bytes = 10, .length_bytes = 0}), nt_status::success);
}

TEST_F(read_command, refuses_lengths_and_offsets_beyond_the_limits) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(read({.file = file, .length_bytes = 65'537}), nt_status::invalid_parameter)
        << "one credit pays for 64 KiB";
    EXPECT_EQ(read({.file = file, .length_bytes = server::limits::transfer_bytes_max + 1}),
              nt_status::invalid_parameter);
    EXPECT_EQ(read({.file = file, .offset_bytes = INT64_MAX, .length_bytes = 1}),
              nt_status::invalid_parameter);
    EXPECT_EQ(read({.file = file, .offset_bytes = ~0ULL, .length_bytes = 1}), nt_status::invalid_parameter);
}

TEST_F(read_command, refuses_opens_that_cannot_be_read) {
    EXPECT_EQ(read({.file = closed_file(), .length_bytes = 1}), nt_status::file_closed);
    EXPECT_EQ(read({.file = open_directory(), .length_bytes = 1}), nt_status::invalid_device_request);
    EXPECT_EQ(read({.file = open_for(access_mask::write_data), .length_bytes = 1}), nt_status::access_denied);
}

TEST_F(read_command, needs_the_right_to_read_or_to_execute) {
    ASSERT_EQ(write(open_for(wire::file_all_access), "x"), nt_status::success);
    EXPECT_EQ(read({.file = open_for(access_mask::execute), .length_bytes = 1}), nt_status::success);
}

TEST_F(read_command, has_no_rdma_channel) {
    EXPECT_EQ(read({.file = open_for(wire::file_all_access),
                    .length_bytes = 1,
                    .channel = wire::io_channel::rdma_v1}),
              nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation

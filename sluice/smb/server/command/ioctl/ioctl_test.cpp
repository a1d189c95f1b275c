#include "sluice/smb/server/command/command_testing.hpp"

// IOCTL ([MS-SMB2] 3.3.5.15): the checks that all controls share.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class ioctl_command : public command_test {
protected:
    nt_status ask(const wire::ioctl_args& what) { return status_of(command::ioctl, what); }
};

TEST_F(ioctl_command, is_for_file_system_controls_alone) {
    EXPECT_EQ(ask({.code = control_code::get_compression,
                   .file = open_for(wire::file_all_access),
                   .flags = wire::ioctl_flags::is_ioctl,
                   .output_bytes_max = 100}),
              nt_status::not_supported);
}

TEST_F(ioctl_command, refuses_controls_that_it_does_not_know) {
    EXPECT_EQ(control(control_code(0x0009'0fff), open_for(wire::file_all_access)).status(),
              nt_status::invalid_device_request);
    EXPECT_EQ(control(control_code(0x0009'0fff), closed_file()).status(), nt_status::file_closed);
}

TEST_F(ioctl_command, refuses_a_file_where_a_control_is_of_the_server) {
    EXPECT_EQ(control(control_code::query_network_interface_info, open_for(wire::file_all_access)).status(),
              nt_status::invalid_parameter);
}

TEST_F(ioctl_command, refuses_controls_of_files_for_pipes_and_the_reverse) {
    EXPECT_EQ(control(control_code::pipe_peek, open_for(wire::file_all_access)).status(),
              nt_status::invalid_device_request);
    EXPECT_EQ(control(control_code::set_sparse, open_pipe()).status(), nt_status::invalid_device_request);
}

TEST_F(ioctl_command, refuses_more_than_its_credits_pay_for) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(ask({.code = control_code::get_compression, .file = file, .output_bytes_max = 65'537}),
              nt_status::invalid_parameter);
    EXPECT_EQ(ask({.code = control_code::get_compression, .file = file, .input_bytes_max = 65'537}),
              nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation

#include "sluice/smb/wire/message/echo.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// ECHO ([MS-SMB2] 3.3.5.17).

namespace sluice::smb_simulation {
namespace {

class echo_command : public command_test {};

TEST_F(echo_command, is_answered_with_and_without_a_session) {
    EXPECT_EQ(status_of(command::echo, wire::echo_args{}), nt_status::success);
    compliant_client unknown_client(where_);
    EXPECT_EQ(unknown_client.call(command::echo, wire::echo_args{}).status(), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation

#include "sluice/smb/wire/message/logoff.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// LOGOFF ([MS-SMB2] 3.3.5.6).

namespace sluice::smb_simulation {
namespace {

class logoff_command : public command_test {};

TEST_F(logoff_command, ends_the_session_with_its_opens) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(status_of(command::logoff, wire::logoff_args{}), nt_status::success);
    EXPECT_EQ(server_of_test().gauges().sessions, 0U);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
    EXPECT_EQ(close(file), nt_status::user_session_deleted);
    EXPECT_EQ(status_of(command::logoff, wire::logoff_args{}), nt_status::user_session_deleted);
}

TEST_F(logoff_command, without_a_session_is_refused) {
    compliant_client unknown_client(where_);
    EXPECT_EQ(unknown_client.call(command::logoff, wire::logoff_args{}).status(),
              nt_status::user_session_deleted);
}

}  // namespace
}  // namespace sluice::smb_simulation

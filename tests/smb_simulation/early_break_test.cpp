#include "sluice/smb/wire/file/oplock_break.hpp"
#include "tests/smb_simulation/polite_client.hpp"

// Found by the simulation of several loops.

namespace sluice::smb_simulation {
namespace {

using smb::wire::nt_status;

class break_of_an_oplock : public served {};

// On another channel, it could overtake the reply to the CREATE: the client would not know the open
// yet, ignore the break, and then assume that it has the oplock that the reply grants ([MS-SMB2]
// 3.3.4.6).
TEST_F(break_of_an_oplock, comes_on_the_channel_that_opened_the_file) {
    polite_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    auto caching = polite_client::for_everything();
    caching.oplock_level = smb::wire::oplock_level::level_2;
    ASSERT_EQ(second.create("f", caching).oplock_level, smb::wire::oplock_level::level_2);
    polite_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    auto overwriting = polite_client::for_everything();
    overwriting.disposition = smb::wire::create_disposition::overwrite;
    (void)other.create("f", overwriting);
    (void)first_->is_answered(0);  // lets the break arrive
    EXPECT_FALSE(first_->is_answered(smb::wire::notification_message_id));
    EXPECT_TRUE(second.is_answered(smb::wire::notification_message_id));
}

}  // namespace
}  // namespace sluice::smb_simulation

#include "sluice/cli/status/recent_refusals.hpp"

#include <gtest/gtest.h>

// The list of clients that were refused.

namespace sluice::cli {
namespace {

using smb::server::event_severity;

class counting_log final : public smb::server::event_log {
public:
    void write(event_severity, std::string_view,
               std::initializer_list<smb::server::event_field>) noexcept override {
        ++lines;
    }
    int lines = 0;
};

class refusals : public ::testing::Test {
protected:
    void refuse(const std::string& peer, std::string_view why = "wrong password") {
        kept.write(event_severity::warning, "logon failed",
                   {{"peer", peer}, {"why", why}, {"hint", "a hint"}});
    }

    counting_log log;
    system_clock_source clock;
    recent_refusals kept{log, clock};
};

TEST_F(refusals, reason_is_kept_and_each_event_is_passed_on) {
    refuse("192.0.2.7:50000");
    kept.write(event_severity::info, "user logged on", {{"user", "bob"}, {"peer", "192.0.2.8:1"}});
    kept.write(
        event_severity::warning, "share access denied",
        {{"user", "bob"}, {"share", "media"}, {"rule", "the share allows only the users in its list"}});
    EXPECT_EQ(log.lines, 3);
    const auto list = kept.list();
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0].peer, "192.0.2.7:50000");
    EXPECT_EQ(list[0].why, "wrong password");
    EXPECT_EQ(list[1].user, "bob");
    EXPECT_EQ(list[1].share, "media");
}

TEST_F(refusals, one_client_cannot_hide_all_others) {
    refuse("192.0.2.1:1", "no such user");
    for (int i = 0; i != 1000; ++i)
        refuse("[2001:db8::1]:" + std::to_string(i));
    EXPECT_EQ(kept.list().size(), 1 + recent_refusals::refusals_of_peer_max);
    EXPECT_EQ(kept.list().front().why, "no such user");
    EXPECT_EQ(kept.list().back().peer, "[2001:db8::1]:999");
}

TEST_F(refusals, list_and_texts_are_bounded) {
    for (int i = 0; i != 1000; ++i)
        refuse("10.0.0." + std::to_string(i) + ":1", std::string(10'000, 'x'));
    const auto list = kept.list();
    EXPECT_EQ(list.size(), recent_refusals::refusals_max);
    EXPECT_EQ(list.back().why.size(), recent_refusals::text_bytes_max);
    EXPECT_EQ(list.back().peer, "10.0.0.999:1");
}

TEST_F(refusals, events_without_an_address_have_no_peer_to_share) {
    for (std::size_t i = 0; i != recent_refusals::refusals_max; ++i)
        kept.write(event_severity::warning, "share access denied", {{"user", "bob"}});
    EXPECT_EQ(kept.list().size(), recent_refusals::refusals_max);
}

}  // namespace
}  // namespace sluice::cli

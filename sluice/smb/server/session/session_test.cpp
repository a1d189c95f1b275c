#include "sluice/smb/server/session/session.hpp"

#include <gtest/gtest.h>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {
namespace {

constexpr auto do_nothing = []() noexcept {};

class session_of_a_client : public testing::Test {
protected:
    session_of_a_client()
        : session_(std::make_shared<session>(7, negotiated{}, *std::pmr::get_default_resource())) {}
    ~session_of_a_client() override { (void)session_->end(false, do_nothing); }

    [[nodiscard]] std::shared_ptr<channel> add_channel(bool is_established) {
        const auto fresh = std::make_shared<channel>(session_, nullptr);
        std::shared_ptr<channel> evicted;
        EXPECT_TRUE(session_->add(fresh, evicted));
        if (is_established) {
            EXPECT_TRUE(session_->establish(*fresh));
        }
        return fresh;
    }
    [[nodiscard]] std::shared_ptr<tree> add_tree() {
        const auto fresh = std::make_shared<tree>();
        EXPECT_TRUE(session_->add(fresh));
        return fresh;
    }
    [[nodiscard]] session::admission_result admit(const std::shared_ptr<open>& one, const tree& through) {
        return session_->admit(++last_number_, one, through, [] { return true; });
    }

    std::shared_ptr<session> session_;
    std::uint64_t last_number_ = 0;
};

TEST_F(session_of_a_client, ends_once_and_gets_nothing_more) {
    const auto by = add_tree();
    const auto on = add_channel(true);
    unsigned calls = 0;
    const auto left = session_->end(false, [&]() noexcept { ++calls; });
    ASSERT_TRUE(left);
    EXPECT_EQ(left->channels, std::vector{on});
    EXPECT_EQ(left->trees, std::vector{by});
    EXPECT_TRUE(on->has_ended());
    EXPECT_FALSE(session_->end(false, [&]() noexcept { ++calls; }));
    EXPECT_EQ(calls, 1U);

    EXPECT_FALSE(session_->add(std::make_shared<tree>()));
    EXPECT_EQ(admit(std::make_shared<open>(), *by), session::admission_result::gone);
    std::shared_ptr<channel> evicted;
    EXPECT_FALSE(session_->add(std::make_shared<channel>(session_, nullptr), evicted));
    EXPECT_FALSE(session_->make_valid(std::nullopt));
    EXPECT_FALSE(session_->establish(*on));
    EXPECT_EQ(session_->state(), session::phase::gone);
}

TEST_F(session_of_a_client, wakes_those_that_wait_for_the_end_of_its_opens) {
    const auto loop = io::make_epoll_multiplexer().value();
    one_shot_event<wire::nt_status> first(*loop);
    one_shot_event<wire::nt_status> left(*loop);
    ASSERT_TRUE(session_->end(false, do_nothing));
    waiting<session> blocked(*session_, first);
    EXPECT_FALSE(session_->have_opens_ended(blocked.place()));
    {
        waiting<session> leaving(*session_, left);
        EXPECT_FALSE(session_->have_opens_ended(leaving.place()));
    }
    session_->signal_opens_ended();
    EXPECT_TRUE(first.is_set());
    EXPECT_FALSE(left.is_set()) << "it does not wait any more";
    waiting<session> late(*session_, left);
    EXPECT_TRUE(session_->have_opens_ended(late.place()));
}

TEST_F(session_of_a_client, that_is_valid_is_not_evicted_as_one_in_progress) {
    EXPECT_TRUE(session_->make_valid(std::nullopt));
    EXPECT_FALSE(session_->end(true, do_nothing));
    EXPECT_EQ(session_->state(), session::phase::valid);
}

TEST_F(session_of_a_client, ends_with_the_loss_of_its_last_established_channel) {
    const auto first = add_channel(true);
    const auto second = add_channel(true);
    const auto being_bound = add_channel(false);
    EXPECT_FALSE(session_->lose(*first, do_nothing));
    EXPECT_EQ(session_->first_channel(), second);
    EXPECT_FALSE(session_->lose(*being_bound, do_nothing)) << "another one is established";
    const auto left = session_->lose(*second, do_nothing);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->channels.size(), 3U) << "lost channels stay until the session ends";
    EXPECT_FALSE(session_->lose(*second, do_nothing));
}

TEST_F(session_of_a_client, ends_with_the_removal_of_its_last_established_channel) {
    const auto first = add_channel(true);
    const auto being_bound = add_channel(false);
    EXPECT_FALSE(session_->remove(*being_bound, do_nothing));
    EXPECT_FALSE(session_->remove(*being_bound, do_nothing)) << "it has ended";
    EXPECT_TRUE(session_->remove(*first, do_nothing));
    EXPECT_EQ(session_->first_channel(), nullptr);
}

TEST_F(session_of_a_client, makes_room_for_a_channel_by_one_that_is_not_established) {
    const auto established = add_channel(true);
    const auto oldest = add_channel(false);
    while (session_->in_use().channels < limits::channels_per_session_max)
        (void)add_channel(false);
    std::shared_ptr<channel> evicted;
    EXPECT_TRUE(session_->add(std::make_shared<channel>(session_, nullptr), evicted));
    EXPECT_EQ(evicted, oldest);
    EXPECT_TRUE(oldest->has_ended());
    EXPECT_FALSE(session_->establish(*oldest)) << "it was evicted before its client has authenticated on it";
    EXPECT_TRUE(established->is_established());
}

TEST_F(session_of_a_client, expires_by_the_timer_of_its_present_lifetime_only) {
    constexpr timer_queue::entry earlier{{}, 1};
    constexpr timer_queue::entry later{{}, 2};
    EXPECT_TRUE(session_->make_valid(std::nullopt));
    const std::uint32_t first = session_->next_lifetime();
    EXPECT_EQ(session_->set_lifetime(first, earlier), std::nullopt);
    EXPECT_TRUE(session_->make_valid(std::nullopt));
    EXPECT_FALSE(session_->expire(first)) << "its client has authenticated again";
    const std::uint32_t second = session_->next_lifetime();
    EXPECT_EQ(session_->set_lifetime(second, later), earlier) << "to be cancelled";
    EXPECT_EQ(session_->set_lifetime(second, earlier), earlier) << "another loop has set it";
    EXPECT_TRUE(session_->expire(second));
    EXPECT_EQ(session_->state(), session::phase::expired);
}

TEST_F(session_of_a_client, takes_no_open_through_a_tree_that_has_ended) {
    const auto ending = add_tree();
    const auto other = add_tree();
    const auto of_ending = std::make_shared<open>();
    const auto of_other = std::make_shared<open>();
    EXPECT_EQ(admit(of_ending, *ending), session::admission_result::admitted);
    EXPECT_EQ(admit(of_other, *other), session::admission_result::admitted);
    EXPECT_EQ(session_->end_tree(*ending), std::vector{of_ending});
    EXPECT_EQ(session_->end_tree(*ending), std::nullopt) << "TREE_DISCONNECT on another channel";
    EXPECT_EQ(admit(std::make_shared<open>(), *ending), session::admission_result::gone);
    EXPECT_EQ(session_->in_use().opens, 2U) << "until its opens end";
}

TEST_F(session_of_a_client, keeps_an_open_that_is_not_taken_from_it) {
    const auto by = add_tree();
    const auto one = std::make_shared<open>();
    EXPECT_EQ(admit(one, *by), session::admission_result::admitted);
    EXPECT_FALSE(session_->release(last_number_, [] { return false; }));
    EXPECT_EQ(session_->in_use().opens, 1U);
    EXPECT_TRUE(session_->release(last_number_, [] { return true; }));
    EXPECT_EQ(session_->in_use().opens, 0U);
}

}  // namespace
}  // namespace sluice::smb::server

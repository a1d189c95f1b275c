#include "sluice/smb/server/open/open.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {
namespace {

class open_of_a_session : public testing::Test {
protected:
    open_of_a_session() { EXPECT_TRUE(one_->attach(*session_, nullptr, nullptr, lost_)); }
    ~open_of_a_session() override {
        (void)one_->end();
        (void)one_->detach();
        (void)one_->take_disconnect_state();
    }

    static shared_bounds many() {
        shared_bounds bounds{};
        bounds.fill(100);
        return bounds;
    }
    static std::shared_ptr<session> make_session() {
        return std::make_shared<session>(1, negotiated{}, *std::pmr::get_default_resource());
    }
    void make_durable() {
        EXPECT_TRUE(one_->go_live());
        EXPECT_TRUE(
            one_->change_durability(*session_, [](std::optional<durability>& now) { now.emplace(); }));
    }
    [[nodiscard]] bool lose(std::uint32_t number) {
        if (not one_->begin_disconnect(*session_, number, quotas_.take(client_, limit::kept_opens)))
            return false;
        EXPECT_TRUE(one_->set_disconnect_end(number, end_));
        return true;
    }

    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{many(), rejections_};
    client_reference client_ = quotas_.user("user");
    std::shared_ptr<session> session_ = make_session();
    std::shared_ptr<session> other_ = make_session();
    std::shared_ptr<open> one_ = std::make_shared<open>();
    open::disconnect_state lost_;
    const timer_queue::entry end_{{}, 5};
};

TEST_F(open_of_a_session, is_ended_by_one_caller) {
    EXPECT_TRUE(one_->go_live());
    EXPECT_EQ(one_->end(), open_phase::live);
    EXPECT_EQ(one_->end(), open_phase::ended);
    EXPECT_FALSE(one_->go_live());
}

TEST_F(open_of_a_session, that_has_ended_while_it_was_made_does_not_go_live) {
    EXPECT_EQ(one_->end_if_of(session_.get()), open_phase::making);
    EXPECT_FALSE(one_->go_live());
    EXPECT_EQ(one_->end_if_of(session_.get()), std::nullopt) << "it has ended";
}

TEST_F(open_of_a_session, is_not_ended_or_taken_by_another_session) {
    EXPECT_TRUE(one_->go_live());
    EXPECT_EQ(one_->end_if_of(other_.get()), std::nullopt);
    EXPECT_EQ(one_->end_if_of(nullptr), std::nullopt) << "it is not without its client";
    EXPECT_FALSE(one_->detach_from(*other_));
    EXPECT_FALSE(one_->attach(*other_, nullptr, nullptr, lost_));
    EXPECT_TRUE(one_->is_of(*session_));
    EXPECT_TRUE(one_->is_live());
}

TEST_F(open_of_a_session, comes_back_with_its_timer_and_its_count) {
    make_durable();
    EXPECT_TRUE(lose(one_->next_disconnect()));
    EXPECT_FALSE(one_->has_session());
    EXPECT_EQ(quotas_.in_use(limit::kept_opens), 1U);
    EXPECT_TRUE(one_->attach(*other_, nullptr, nullptr, lost_));
    EXPECT_EQ(lost_.end, end_) << "to be cancelled";
    EXPECT_EQ(lost_.counted.amount(), 1U);
    EXPECT_FALSE(one_->end_if_disconnected(1)) << "the timer has begun while its client came back";
    EXPECT_TRUE(one_->is_live());
}

TEST_F(open_of_a_session, ends_by_the_timer_of_its_last_loss_only) {
    make_durable();
    EXPECT_TRUE(lose(1));
    EXPECT_TRUE(one_->attach(*session_, nullptr, nullptr, lost_));
    EXPECT_EQ(one_->next_disconnect(), 2U);
    EXPECT_FALSE(lose(1)) << "an outdated number";
    EXPECT_TRUE(lose(2));
    EXPECT_FALSE(one_->end_if_disconnected(1));
    EXPECT_TRUE(one_->end_if_disconnected(2));
    EXPECT_TRUE(one_->has_ended());
    EXPECT_FALSE(one_->end_if_disconnected(2));
}

TEST_F(open_of_a_session, ends_by_a_timer_that_runs_before_it_is_known) {
    make_durable();
    ASSERT_TRUE(one_->begin_disconnect(*session_, 1, quotas_.take(client_, limit::kept_opens)));
    EXPECT_TRUE(one_->end_if_disconnected(1));
    EXPECT_FALSE(one_->set_disconnect_end(1, end_)) << "the disconnect is over";
    EXPECT_TRUE(one_->has_ended());
    EXPECT_EQ(one_->take_disconnect_state().counted.amount(), 1U);
}

TEST_F(open_of_a_session, refuses_the_timer_of_a_loss_after_which_it_has_come_back) {
    make_durable();
    ASSERT_TRUE(one_->begin_disconnect(*session_, 1, quotas_.take(client_, limit::kept_opens)));
    EXPECT_TRUE(one_->attach(*other_, nullptr, nullptr, lost_));
    EXPECT_FALSE(lost_.end);
    EXPECT_FALSE(one_->set_disconnect_end(1, end_));
    EXPECT_TRUE(one_->is_live());
}

TEST_F(open_of_a_session, is_kept_only_if_it_is_durable_and_still_the_sessions) {
    EXPECT_TRUE(one_->go_live());
    EXPECT_FALSE(lose(1)) << "it is not durable";
    EXPECT_TRUE(one_->change_durability(*session_, [](std::optional<durability>& now) { now.emplace(); }));
    EXPECT_FALSE(one_->change_durability(*other_, [](std::optional<durability>&) {}));
    EXPECT_EQ(one_->end(), open_phase::live);
    EXPECT_FALSE(lose(1)) << "it has ended";
    EXPECT_EQ(quotas_.in_use(limit::kept_opens), 0U);
}

}  // namespace
}  // namespace sluice::smb::server

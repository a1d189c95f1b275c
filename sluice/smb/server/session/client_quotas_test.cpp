#include "sluice/smb/server/session/client_quotas.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::smb::server {
namespace {

class counting_log final : public event_log {
public:
    void write(event_severity, std::string_view, std::initializer_list<event_field>) noexcept override {
        ++lines;
    }
    int lines = 0;
};

class client_quotas_of_ten : public testing::Test {
protected:
    static shared_bounds ten() {
        shared_bounds all{};
        all.fill(10);
        return all;
    }

    /// Takes opens one by one until that is refused. Returns how many.
    std::size_t take_all(const client_reference& by) {
        for (std::size_t taken = 0;; ++taken) {
            quota_hold one = quotas_.take(by, limit::opens);
            if (one.amount() == 0) return taken;
            holds_.push_back(std::move(one));
        }
    }

    simulated_clock clock_;
    counting_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{ten(), rejections_};
    std::vector<quota_hold> holds_;
};

TEST_F(client_quotas_of_ten, give_one_client_half_and_leave_room_for_each_that_comes_later) {
    EXPECT_EQ(take_all(quotas_.user("greedy")), 5U);
    EXPECT_EQ(take_all(quotas_.user("second")), 3U);
    EXPECT_EQ(take_all(quotas_.user("third")), 1U);
    EXPECT_EQ(take_all(quotas_.user("fourth")), 1U);
    EXPECT_EQ(quotas_.in_use(limit::opens), 10U);
    EXPECT_EQ(quotas_.most_of_client(limit::opens), 5U);
}

TEST_F(client_quotas_of_ten, give_greedy_clients_equal_shares_and_keep_one_share_free) {
    std::vector<client_reference> clients{quotas_.user("a"), quotas_.user("b"), quotas_.user("c"),
                                          quotas_.user("d")};
    for (int round = 0; round != 10; ++round)
        for (const client_reference& one : clients)
            if (quota_hold more = quotas_.take(one, limit::opens); more.amount() != 0)
                holds_.push_back(std::move(more));
    EXPECT_EQ(quotas_.in_use(limit::opens), 8U);
    EXPECT_EQ(quotas_.most_of_client(limit::opens), 2U);
    EXPECT_EQ(take_all(quotas_.user("newcomer")), 1U);
}

TEST_F(client_quotas_of_ten, count_a_user_once_whatever_the_case_of_its_name) {
    (void)take_all(quotas_.user("Alice"));
    EXPECT_EQ(take_all(quotas_.user("aLICE")), 0U);
    EXPECT_EQ(quotas_.clients(), 1U);
}

TEST_F(client_quotas_of_ten, give_guests_of_all_addresses_together_the_share_of_one_client) {
    const auto guest = [&](unsigned number) {
        const auto where = io::socket_address::ip("10.0.0." + std::to_string(number), 445).value();
        return quotas_.guest(client_address(where));
    };
    std::size_t taken = 0;
    for (unsigned number = 1; number != 100; ++number)
        taken += take_all(guest(number));
    EXPECT_EQ(taken, 5U);
    EXPECT_EQ(holds_.front().client().name(), "guest 10.0.0.1");
    EXPECT_EQ(quotas_.take(holds_.front().client(), limit::opens).amount(), 0U);
    EXPECT_EQ(take_all(quotas_.user("alice")), 3U);
    holds_.clear();
    EXPECT_EQ(quotas_.clients(), 0U);
    EXPECT_LT(take_all(guest(1)), 5U) << "one guest leaves some for the others";
}

TEST_F(client_quotas_of_ten, count_each_resource_by_itself) {
    const client_reference one = quotas_.user("a");
    (void)take_all(one);
    EXPECT_EQ(quotas_.take(one, limit::locks).amount(), 1U);
}

TEST_F(client_quotas_of_ten, release_the_amount_of_a_hold_when_it_ends) {
    (void)take_all(quotas_.user("a"));
    EXPECT_GT(quotas_.clients(), 0U);
    holds_.clear();
    EXPECT_EQ(quotas_.in_use(limit::opens), 0U);
    EXPECT_EQ(quotas_.clients(), 0U) << "a client without holds is forgotten";
    EXPECT_EQ(take_all(quotas_.user("b")), 5U);
}

TEST_F(client_quotas_of_ten, change_the_amount_of_a_hold_completely_or_not_at_all) {
    const client_reference one = quotas_.user("a");
    quota_hold some = quotas_.take(one, limit::locks, 3);
    EXPECT_TRUE(some.resize(5));
    EXPECT_FALSE(some.resize(6));
    EXPECT_EQ(some.amount(), 5U);
    EXPECT_TRUE(some.resize(1));
    EXPECT_EQ(quotas_.in_use(limit::locks), 1U);
    quota_hold moved = std::move(some);
    EXPECT_EQ(moved.amount(), 1U);
    moved = quota_hold{};
    EXPECT_EQ(quotas_.in_use(limit::locks), 0U);
}

TEST_F(client_quotas_of_ten, refuse_amounts_beyond_the_bound_without_overflow) {
    const client_reference one = quotas_.user("a");
    EXPECT_EQ(quotas_.take(one, limit::queued_change_bytes, ~std::size_t{0}).amount(), 0U);
    EXPECT_EQ(quotas_.take(one, limit::queued_change_bytes, 11).amount(), 0U);
    EXPECT_EQ(quotas_.take({}, limit::queued_change_bytes).amount(), 0U) << "no client, no share";
}

TEST_F(client_quotas_of_ten, give_a_hold_of_nothing_to_a_client_that_holds_more_than_is_free) {
    quota_hold most = quotas_.take(quotas_.user("a"), limit::locks, 5);
    quota_hold others = quotas_.take(quotas_.user("b"), limit::locks, 3);
    ASSERT_EQ(quotas_.in_use(limit::locks), 8U);
    quota_hold later = quotas_.take(quotas_.user("a"), limit::locks, 0);
    EXPECT_EQ(later.client(), quotas_.user("a"));
    EXPECT_EQ(rejections_.of(limit::locks), 0U) << "nothing was refused";
    EXPECT_FALSE(later.resize(1));
    most.reset();
    EXPECT_TRUE(later.resize(1));
}

TEST_F(client_quotas_of_ten, count_rejections_and_log_them_at_a_bounded_rate) {
    (void)take_all(quotas_.user("a"));
    for (int i = 0; i != 99; ++i)
        (void)quotas_.take(quotas_.user("a"), limit::opens);
    EXPECT_EQ(rejections_.of(limit::opens), 100U);
    EXPECT_EQ(rejections_.of(limit::locks), 0U);
    EXPECT_EQ(log_.lines, 1);
    clock_.advance(limit_rejections::logged_every);
    (void)quotas_.take(quotas_.user("a"), limit::opens);
    EXPECT_EQ(log_.lines, 2);
}

}  // namespace
}  // namespace sluice::smb::server

// The monitors of this directory, used by several threads at once.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/core/threads_testing.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/smb/server/session/admission.hpp"
#include "sluice/smb/server/session/logon_throttle.hpp"
#include "sluice/smb/server/session/session_table.hpp"
#include "sluice/smb/server/session/share_list.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::smb::server {
namespace {

constexpr std::size_t threads = 4;
constexpr int rounds = 500;

class monitors_of_sessions : public testing::Test {
protected:
    static server_bounds few() {
        server_bounds bounds;
        bounds.shared.fill(10);
        bounds.connections_without_session = 3;
        bounds.sessions_in_progress = 3;
        return bounds;
    }
    static io::socket_address address(std::size_t number) {
        return io::socket_address::ip("10.0.0." + std::to_string(number + 1), 445).value();
    }

    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{few().shared, rejections_};
};

TEST_F(monitors_of_sessions, quotas_never_exceed_a_bound_and_forget_clients_that_are_gone) {
    std::atomic<std::uint64_t> rejected{0};
    run_at_once(threads, [&](std::size_t number) {
        for (int i = 0; i != rounds; ++i) {
            // Two threads share a client, and enter it while the other leaves.
            const client_reference by = quotas_.user(number % 2 == 0 ? "even" : "odd");
            const client_reference guest = quotas_.guest(client_address(address(number)));
            quota_hold one = quotas_.take(by, limit::opens, 3);
            if (one.amount() == 0) rejected.fetch_add(1, std::memory_order_relaxed);
            quota_hold more = quotas_.take(guest, limit::opens);
            if (more.amount() == 0) rejected.fetch_add(1, std::memory_order_relaxed);
            EXPECT_LE(quotas_.in_use(limit::opens), quotas_.bound_of(limit::opens));
            if (one.amount() != 0) {
                EXPECT_TRUE(one.resize(1));
            }
            const quota_hold moved = std::move(one);
        }
    });
    EXPECT_EQ(quotas_.in_use(limit::opens), 0U);
    EXPECT_EQ(quotas_.clients(), 0U);
    EXPECT_EQ(rejections_.of(limit::opens), rejected.load());
}

TEST_F(monitors_of_sessions, admission_counts_what_enters_and_leaves) {
    admission admitted(few(), quotas_, rejections_);
    run_at_once(threads, [&](std::size_t number) {
        for (int i = 0; i != rounds; ++i) {
            admitted_connection on(nullptr, client_address(address(number)));
            session fresh(number * rounds + static_cast<unsigned>(i), {}, *std::pmr::get_default_resource());
            (void)admitted.enter(on);
            EXPECT_TRUE(admitted.may_begin(on));
            (void)admitted.begin(fresh, on);
            admitted.end(fresh);
            admitted.leave(on);
        }
    });
    EXPECT_EQ(admitted.connections_without_session(), 0U);
    EXPECT_EQ(admitted.sessions_in_progress(), 0U);
}

TEST_F(monitors_of_sessions, logon_throttle_checks_one_proof_of_a_delayed_address_at_a_time) {
    logon_throttle throttle(clock_, rejections_);
    for (unsigned i = 0; i != 2 * limits::logon_failures_free; ++i)
        throttle.failed(address(0));
    clock_.advance(limits::logon_delay_max);
    std::atomic<int> checking{0};
    run_at_once(threads, [&](std::size_t) {
        for (int i = 0; i != rounds; ++i) {
            const auto entered = throttle.enter(address(0));
            if (not entered.is_immediate) continue;
            EXPECT_EQ(checking.fetch_add(1), 0);
            throttle.failed(address(0));
            clock_.advance(limits::logon_delay_max);
            checking.fetch_sub(1);
        }
    });
    EXPECT_EQ(throttle.waiting(), 0U);
}

TEST_F(monitors_of_sessions, session_table_gives_each_session_an_id_of_its_own) {
    session_table table(41);
    run_at_once(threads, [&](std::size_t number) {
        for (int i = 0; i != rounds; ++i) {
            const auto fresh =
                std::make_shared<session>(table.take_id(), negotiated{}, *std::pmr::get_default_resource());
            fresh->user.name = "user";
            table.add(fresh);
            EXPECT_TRUE(fresh->make_valid(std::nullopt));
            EXPECT_EQ(table.find(fresh->id), fresh);
            if (number == 0) {
                for (const std::shared_ptr<session>& other : table.alike(*fresh))
                    EXPECT_EQ(other->user.name, "user");
            }
            EXPECT_TRUE(fresh->end(false, [] {}).has_value());
            table.remove(fresh->id);
        }
    });
    EXPECT_EQ(table.size(), 0U);
}

TEST_F(monitors_of_sessions, session_table_gives_one_dialect_to_the_sessions_of_a_client) {
    session_table table(0);
    std::array<std::atomic<int>, 2> valid{};
    run_at_once(threads, [&](std::size_t number) {
        negotiated agreed;
        agreed.dialect = number % 2 == 0 ? wire::dialect::smb_3_0_2 : wire::dialect::smb_3_1_1;
        for (int i = 0; i != rounds; ++i) {
            const auto fresh =
                std::make_shared<session>(table.take_id(), agreed, *std::pmr::get_default_resource());
            table.add(fresh);
            fresh->user.name = "user";  // as its SESSION_SETUP does, while others search the table
            if (table.claim_dialect(*fresh)) {
                valid.at(number % 2).fetch_add(1);
                EXPECT_TRUE(fresh->make_valid(std::nullopt));
                EXPECT_EQ(valid.at(1 - number % 2).load(), 0);
                valid.at(number % 2).fetch_sub(1);
            }
            EXPECT_TRUE(fresh->end(false, [] {}).has_value());
            table.remove(fresh->id);
        }
    });
    EXPECT_EQ(table.size(), 0U);
}

TEST_F(monitors_of_sessions, user_database_is_asked_while_it_is_edited) {
    user_database users;
    run_at_once(threads, [&](std::size_t number) {
        const std::string own = "user" + std::to_string(number);
        for (int i = 0; i != rounds / 10; ++i) {
            EXPECT_TRUE(users.set(own, "password"));
            EXPECT_TRUE(users.find(own, ""));
            EXPECT_TRUE(users.contains(own));
            (void)users.names();
            EXPECT_TRUE(users.admit({}));
            EXPECT_TRUE(users.remove(own));
        }
    });
    EXPECT_TRUE(users.is_empty());
}

TEST_F(monitors_of_sessions, snapshot_of_the_shares_stays_while_the_next_is_published) {
    share_list shares;
    run_at_once(threads, [&](std::size_t number) {
        for (int i = 0; i != rounds; ++i) {
            if (number == 0) {
                shares.publish({std::make_shared<share>(), std::make_shared<share>()});
                continue;
            }
            const share_list::snapshot seen = shares.current();
            for (const std::shared_ptr<share>& one : *seen) {
                one->count_open_file();
                if (number == 1) one->withdraw();
                (void)one->is_withdrawn();
                one->count_closed_file();
            }
        }
    });
    EXPECT_EQ(shares.current()->front()->open_files(), 0U);
}

}  // namespace
}  // namespace sluice::smb::server

#include <gtest/gtest.h>

#include "sluice/smb/wire/security/access_mask.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/world/history_run.hpp"

// Histories of several clients are compared with a sequential model: invariants do not detect a
// refusal without a reason.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using kind = operation_seen::kind;
using wire::access_mask;
using wire::nt_status;

constexpr auto reading = access_mask::read_data;
constexpr auto deleting = access_mask::delete_object;
constexpr wire::share_access with_all{7};

struct interval {
    std::uint64_t sent;
    std::uint64_t answered;
};

operation_seen create(interval when, nt_status status, access_mask access = reading,
                      wire::share_access share = with_all,
                      wire::create_disposition how = wire::create_disposition::open_if) {
    return {.what = kind::create,
            .sent = when.sent,
            .answered = when.answered,
            .status = status,
            .disposition = how,
            .access = access,
            .share = share};
}

operation_seen on(std::size_t open, kind what, interval when, nt_status status = nt_status::success) {
    return {.what = what,
            .sent = when.sent,
            .answered = when.answered,
            .status = status,
            .replaces = what == kind::dispose,
            .open = open};
}

TEST(is_linearizable, accepts_a_refusal_by_an_open_that_exists) {
    EXPECT_TRUE(is_linearizable({create({1, 2}, nt_status::success, reading, wire::share_access::none),
                                 create({3, 4}, nt_status::sharing_violation)}));
}

TEST(is_linearizable, rejects_a_refusal_by_an_open_that_was_closed_before) {
    EXPECT_FALSE(is_linearizable({create({1, 2}, nt_status::success, reading, wire::share_access::none),
                                  on(0, kind::close, {3, 4}), create({5, 6}, nt_status::sharing_violation)}));
}

TEST(is_linearizable, accepts_either_outcome_while_the_close_is_in_flight) {
    for (const nt_status status : {nt_status::success, nt_status::sharing_violation})
        EXPECT_TRUE(is_linearizable({create({1, 2}, nt_status::success, reading, wire::share_access::none),
                                     on(0, kind::close, {3, 6}), create({4, 5}, status)}));
}

TEST(is_linearizable, rejects_two_opens_that_exclude_each_other) {
    EXPECT_FALSE(is_linearizable({create({1, 3}, nt_status::success, reading, wire::share_access::none),
                                  create({2, 4}, nt_status::success, reading, wire::share_access::none)}));
}

TEST(is_linearizable, rejects_two_creators_of_one_name) {
    constexpr auto creating = wire::create_disposition::create;
    EXPECT_FALSE(is_linearizable({create({1, 3}, nt_status::success, reading, with_all, creating),
                                  create({2, 4}, nt_status::success, reading, with_all, creating)}));
}

TEST(is_linearizable, rejects_an_open_of_a_file_marked_for_removal) {
    const history until_then{create({1, 2}, nt_status::success, deleting), on(0, kind::dispose, {3, 4})};
    for (const auto& [status, is_right] :
         {std::pair{nt_status::delete_pending, true}, {nt_status::success, false}}) {
        history all = until_then;
        all.push_back(create({5, 6}, status));
        EXPECT_EQ(is_linearizable(all), is_right);
    }
}

TEST(is_linearizable, rejects_a_name_that_stays_after_its_removal) {
    EXPECT_FALSE(is_linearizable({create({1, 2}, nt_status::success, deleting), on(0, kind::dispose, {3, 4}),
                                  on(0, kind::close, {5, 6}), create({7, 8}, nt_status::delete_pending)}));
}

TEST(is_linearizable, rejects_a_name_that_stays_after_the_open_that_deletes_it) {
    for (const auto& [status, is_right] :
         {std::pair{nt_status::object_name_not_found, true}, {nt_status::success, false}}) {
        history all{create({1, 2}, nt_status::success, deleting), on(0, kind::close, {3, 4}),
                    create({5, 6}, status, reading, with_all, wire::create_disposition::open)};
        all[0].deletes_on_close = true;
        EXPECT_EQ(is_linearizable(all), is_right);
    }
}

TEST(is_linearizable, rejects_two_exclusive_locks_of_one_range) {
    EXPECT_FALSE(is_linearizable({create({1, 2}, nt_status::success), create({3, 4}, nt_status::success),
                                  on(0, kind::lock, {5, 7}), on(1, kind::lock, {6, 8})}));
}

TEST(is_linearizable, rejects_a_rename_onto_an_open_file) {
    history all{create({1, 2}, nt_status::success), create({3, 4}, nt_status::success, deleting)};
    all[1].name = 1;
    all.push_back(on(1, kind::rename, {5, 6}));
    all.back().replaces = true;
    EXPECT_FALSE(is_linearizable(all));
    all.back().status = nt_status::access_denied;
    EXPECT_TRUE(is_linearizable(all));
}

// The second open is of the renamed file, the third creates another: the order is 2, 1, 3, not 1,
// 3, 2.
TEST(is_linearizable, distinguishes_states_whose_opens_are_of_different_files) {
    history all{create({1, 2}, nt_status::success, deleting),
                on(0, kind::rename, {3, 8}),
                create({4, 9}, nt_status::success),
                create({5, 10}, nt_status::success),
                on(2, kind::lock, {11, 12}),
                on(3, kind::lock, {13, 14})};
    all[1].name = 1;
    EXPECT_TRUE(is_linearizable(all));
}

TEST(server_on_simulated_loops, answers_like_a_sequential_server) {
    std::size_t operations = 0;
    std::size_t refusals = 0;
    for (const std::uint64_t seed : testing_by_simulation::seeds(100)) {
        const testing_by_simulation::replayable here(seed);
        const history all = record_history(seed);
        EXPECT_TRUE(is_linearizable(all)) << to_text(all);
        operations += all.size();
        for (const operation_seen& each : all)
            refusals += wire::is_error(each.status);
        if (testing::Test::HasFailure()) return;
    }
    if (testing_by_simulation::seed_to_replay()) return;
    EXPECT_GT(operations, 1000U);
    EXPECT_GT(refusals, 200U);
}

// These would be accepted by a checker that accepts everything.
TEST(server_on_simulated_loops, has_histories_that_are_rejected_after_a_status_is_changed) {
    unsigned rejected = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        history all = record_history(seed);
        for (operation_seen& each : all)
            if (each.status == nt_status::success and each.what == kind::create) {
                each.status = nt_status::sharing_violation;
                break;
            }
        rejected += not is_linearizable(all);
    }
    EXPECT_GT(rejected, 15U);
}

}  // namespace
}  // namespace sluice::smb_simulation

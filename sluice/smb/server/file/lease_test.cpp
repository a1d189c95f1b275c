#include "sluice/smb/server/file/lease.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/base/random.hpp"

namespace sluice::smb::server {
namespace {

using wire::lease_state;
using wire::nt_status;

constexpr lease_state none = lease_state::none;
constexpr lease_state r = lease_state::read;
constexpr lease_state rh = r | lease_state::handle;
constexpr lease_state rw = r | lease_state::write;
constexpr lease_state rwh = rw | lease_state::handle;
constexpr std::array states{none, r, rh, rw, rwh};

[[nodiscard]] lease lease_of(lease_state granted, lease::kind kind = lease::kind::lease_v2,
                             std::uint16_t epoch = 0x4711) {
    return lease(nullptr, kind, {}, granted, epoch);
}

TEST(lease, is_asked_once_and_gives_up_what_it_was_asked_for) {
    lease held = lease_of(rwh);
    EXPECT_EQ(held.ask(rh), (break_notice{.from = rwh, .to = rh, .needs_answer = true}));
    EXPECT_TRUE(held.is_breaking());
    EXPECT_EQ(held.held(), rwh) << "the state stays until the answer";
    EXPECT_EQ(held.ask(rh), std::nullopt);
    const auto [status, next] = held.acknowledge(rh);
    EXPECT_EQ(status, nt_status::success);
    EXPECT_EQ(next, std::nullopt);
    EXPECT_EQ(held.held(), rh);
    EXPECT_FALSE(held.is_breaking());
}

TEST(lease, may_give_up_more_but_not_less_than_asked) {
    lease held = lease_of(rwh);
    ASSERT_TRUE(held.ask(rh));
    EXPECT_EQ(held.acknowledge(rw).status, nt_status::request_not_accepted);
    EXPECT_EQ(held.acknowledge(rwh).status, nt_status::request_not_accepted);
    EXPECT_TRUE(held.is_breaking());
    EXPECT_EQ(held.acknowledge(none).status, nt_status::success);
    EXPECT_EQ(held.held(), none);
}

TEST(lease, without_a_break_has_nothing_to_answer) {
    lease held = lease_of(rwh);
    EXPECT_EQ(held.acknowledge(rh).status, nt_status::unsuccessful);
    EXPECT_EQ(held.held(), rwh);
}

TEST(lease, loses_its_read_cache_without_an_answer) {
    lease held = lease_of(r);
    EXPECT_EQ(held.ask(none), (break_notice{.from = r, .to = none, .needs_answer = false}));
    EXPECT_EQ(held.held(), none);
    EXPECT_FALSE(held.is_breaking());
}

TEST(lease, is_broken_in_steps_when_more_is_wanted_during_a_break) {
    lease held = lease_of(rwh);
    ASSERT_TRUE(held.ask(rh));
    EXPECT_EQ(held.ask(none), std::nullopt);
    EXPECT_EQ(held.acknowledge(rh).next, (break_notice{.from = rh, .to = r, .needs_answer = true}));
    EXPECT_TRUE(held.is_breaking());
    EXPECT_EQ(held.acknowledge(r).next, (break_notice{.from = r, .to = none, .needs_answer = false}));
    EXPECT_FALSE(held.is_breaking());
    EXPECT_EQ(held.held(), none);
}

TEST(lease, grows_only_by_all_that_was_requested) {
    lease held = lease_of(r);
    held.raise(rwh, rh);
    EXPECT_EQ(held.held(), r) << "a part of it is not worth a change";
    held.raise(rh, rh);
    EXPECT_EQ(held.held(), rh);
    held.raise(rw, rw);
    EXPECT_EQ(held.held(), rh) << "raising takes nothing away";
    held.raise(rwh, rwh);
    EXPECT_EQ(held.held(), rwh);
}

TEST(lease, does_not_grow_during_a_break) {
    lease held = lease_of(rh);
    ASSERT_TRUE(held.ask(r));
    held.raise(rwh, rwh);
    EXPECT_EQ(held.held(), rh);
}

TEST(lease, counts_its_changes_from_what_the_client_said) {
    lease held = lease_of(r, lease::kind::lease_v2, 0xffff);
    EXPECT_EQ(held.epoch(), 0);
    held.raise(rwh, rwh);
    EXPECT_EQ(held.epoch(), 1);
    ASSERT_TRUE(held.ask(rh));
    EXPECT_EQ(held.epoch(), 2);
    EXPECT_EQ(held.acknowledge(rh).status, nt_status::success);
    EXPECT_EQ(held.epoch(), 2) << "an answer is not a change to report to the client";
    EXPECT_EQ(lease_of(r, lease::kind::lease_v1).epoch(), 0);
}

TEST(lease, has_not_changed_yet_when_nothing_was_granted) {
    lease held = lease_of(none, lease::kind::lease_v2, 100);
    EXPECT_EQ(held.epoch(), 100);
    held.raise(r, r);
    EXPECT_EQ(held.epoch(), 101);
}

TEST(lease, that_is_an_oplock_forgets_requests_made_during_a_break) {
    lease held = lease_of(rwh, lease::kind::oplock);
    ASSERT_TRUE(held.ask(r));
    EXPECT_EQ(held.ask(none), std::nullopt);
    EXPECT_EQ(held.acknowledge(r).next, std::nullopt);
    EXPECT_EQ(held.held(), r);
}

TEST(oplock_level, is_its_state_and_back) {
    using wire::oplock_level;
    for (const oplock_level level :
         {oplock_level::none, oplock_level::level_2, oplock_level::exclusive, oplock_level::batch})
        EXPECT_EQ(level_of(state_of(level)), level);
    EXPECT_EQ(level_of(rh), oplock_level::level_2);
    EXPECT_EQ(level_of(lease_state::write), oplock_level::none);
}

// The state as seen from outside: the client's view, from the grants and breaks that it received,
// and the requests of other clients. Independent of the implementation of the lease.
struct client_model {
    lease_state believes;              // what the client may be caching
    lease_state must_lose = none;      // what others wanted since it was last raised
    std::optional<lease_state> asked;  // a notice it has not answered
    unsigned notices = 0;
};

void hear(client_model& client, const std::optional<break_notice>& notice) {
    if (not notice) return;
    ++client.notices;
    EXPECT_FALSE(client.asked.has_value()) << "a second break before the answer to the first";
    EXPECT_EQ(notice->from, client.believes);
    EXPECT_TRUE(wire::has(notice->from, notice->to)) << "a break gives nothing";
    EXPECT_NE(notice->from, notice->to) << "a break takes something";
    EXPECT_EQ(notice->needs_answer, notice->from != r);
    if (notice->needs_answer) {
        client.asked = notice->to;
    } else {
        client.believes = notice->to;
    }
}

void answer_at_random(lease& held, client_model& client, random_source& random) {
    const lease_state kept = states[random.below(states.size())];
    const auto [status, next] = held.acknowledge(kept);
    if (not client.asked) {
        EXPECT_EQ(status, nt_status::unsuccessful);
    } else if (not wire::has(*client.asked, kept)) {
        EXPECT_EQ(status, nt_status::request_not_accepted);
    } else {
        EXPECT_EQ(status, nt_status::success);
        client.asked.reset();
        client.believes = kept;
    }
    hear(client, next);
}

void step_at_random(lease& held, client_model& client, random_source& random) {
    switch (random.below(8)) {
        case 0:
        case 1:
        case 2: {
            const lease_state keep = states[random.below(states.size())];
            client.must_lose |= without(rwh, keep);
            hear(client, held.ask(keep));
            break;
        }
        case 3: {
            const lease_state requested = states[random.below(states.size())];
            const lease_state grantable = states[random.below(states.size())] & requested;
            const lease_state before = held.held();
            held.raise(requested, grantable);
            if (held.held() == before) break;
            EXPECT_FALSE(client.asked.has_value());
            EXPECT_TRUE(wire::has(held.held(), before));
            EXPECT_EQ(held.held(), requested);
            client.believes = held.held();
            client.must_lose = none;
            break;
        }
        case 4:
            if (random.below(8) != 0) break;
            held.time_out();
            client.believes = none;
            client.asked.reset();
            break;
        default:
            answer_at_random(held, client, random);
    }
}

TEST(lease, agrees_with_what_its_client_believes_whatever_happens) {
    constexpr unsigned runs = 300;
    constexpr unsigned steps = 200;
    unsigned notices = 0;
    for (unsigned seed = 0; seed != runs; ++seed) {
        SCOPED_TRACE(seed);
        seeded_random random(seed);
        const lease_state granted = states[random.below(states.size())];
        lease held = lease_of(granted);
        client_model client{.believes = granted, .asked = {}};
        for (unsigned i = 0; i != steps and not testing::Test::HasFailure(); ++i) {
            step_at_random(held, client, random);
            EXPECT_EQ(held.held(), client.believes);
            EXPECT_EQ(held.is_breaking(), client.asked.has_value());
            if (not client.asked) {
                EXPECT_EQ(held.held() & client.must_lose, none) << "the requested bits are still held";
            }
        }
        notices += client.notices;
    }
    EXPECT_GT(notices, runs) << "the steps reach what they are to try";
}

}  // namespace
}  // namespace sluice::smb::server

// Range locks as senders, with the model in this directory and with real implementations.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sluice/sync/range_lock_sender.hpp"
#include "sluice/sync/range_lock_testing.hpp"
#include "tests/execution_model/under_test.hpp"

namespace sluice::sync {
namespace {

auto lock_of(range_lock& lock, const lock_args& wanted) {
    return async_lock<traits>(lock, wanted);
}

using sender_type = decltype(lock_of(std::declval<range_lock&>(), std::declval<lock_args>()));
static_assert(ex::sender<sender_type>);
static_assert(std::same_as<sender_type::completion_signatures,
                           ex::completion_signatures<ex::set_value_t(range_guard), ex::set_stopped_t()>>);

// The signals that a receiver has received.
struct heard {
    std::atomic<int> grants{0}, stops{0};
    range_guard guard;
    std::thread::id where;

    [[nodiscard]] int completions() const {
        // acquire: pairs with the release of the receiver.
        return grants.load(std::memory_order_acquire) + stops.load(std::memory_order_acquire);
    }
};

template <class Token>
struct listener {
    using receiver_concept = receiver_tag;
    struct environment {
        Token token;
        [[nodiscard]] Token query(ex_queries::get_stop_token_t) const noexcept { return token; }
    };
    void set_value(range_guard got) && noexcept {
        into->guard = std::move(got);
        count(into->grants);
    }
    void set_stopped() && noexcept { count(into->stops); }
    void count(std::atomic<int>& which) const noexcept {
        into->where = std::this_thread::get_id();
        which.fetch_add(1, std::memory_order_release);
    }
    [[nodiscard]] environment get_env() const noexcept { return {token}; }

    heard* into;
    Token token;
};
template <class Token>
listener(heard*, Token) -> listener<Token>;

TEST(lock_sender, completes_inside_start_without_a_conflict) {
    range_lock lock;
    heard outcome;
    auto state =
        ex::connect(lock_of(lock, exclusive(0, 9)), listener{&outcome, ex_queries::never_stop_token{}});
    EXPECT_TRUE(lock.try_lock(exclusive(0, 9))) << "nothing happens before the start";
    ex::start(state);
    ASSERT_EQ(outcome.grants, 1);
    EXPECT_EQ(outcome.guard.where(), exclusive(0, 9).where);
    EXPECT_FALSE(lock.try_lock(exclusive(9, 9)));
}

TEST(lock_sender, completes_on_the_thread_that_released_the_range) {
    range_lock lock;
    heard outcome;
    range_guard held = lock.try_lock(exclusive(0, 9));
    auto state = ex::connect(lock_of(lock, shared(5, 5)), listener{&outcome, ex_queries::never_stop_token{}});
    ex::start(state);
    EXPECT_EQ(outcome.completions(), 0);
    std::thread other([&] { held.unlock(); });
    const std::thread::id its_id = other.get_id();
    other.join();
    EXPECT_EQ(outcome.grants, 1);
    EXPECT_EQ(outcome.where, its_id);
}

TEST(lock_sender, makes_no_request_if_stopped_before_the_start) {
    range_lock lock;
    heard outcome;
    ex_queries::inplace_stop_source source;
    source.request_stop();
    auto state = ex::connect(lock_of(lock, exclusive(0, 9)), listener{&outcome, source.get_token()});
    ex::start(state);
    EXPECT_EQ(outcome.stops, 1);
    EXPECT_TRUE(lock.try_lock(exclusive(0, 9)));
}

TEST(lock_sender, no_longer_blocks_later_requests_if_stopped_while_waiting) {
    range_lock lock;
    const range_guard held = lock.try_lock(shared(0, 9));
    heard outcome;
    heard behind;
    ex_queries::inplace_stop_source source;
    auto state = ex::connect(lock_of(lock, exclusive(0, 9)), listener{&outcome, source.get_token()});
    auto next = ex::connect(lock_of(lock, shared(0, 9)), listener{&behind, ex_queries::never_stop_token{}});
    ex::start(state);
    ex::start(next);
    EXPECT_EQ(outcome.completions() + behind.completions(), 0);
    source.request_stop();
    EXPECT_EQ(outcome.stops, 1);
    EXPECT_EQ(outcome.completions(), 1);
    EXPECT_EQ(behind.grants, 1);
}

TEST(lock_sender, keeps_its_lock_if_stopped_after_the_grant) {
    range_lock lock;
    heard outcome;
    ex_queries::inplace_stop_source source;
    auto state = ex::connect(lock_of(lock, exclusive(0, 9)), listener{&outcome, source.get_token()});
    ex::start(state);
    source.request_stop();
    EXPECT_EQ(outcome.grants, 1);
    EXPECT_EQ(outcome.completions(), 1);
    EXPECT_FALSE(lock.try_lock(exclusive(0, 9)));
}

TEST(lock_sender, is_stopped_when_the_waits_of_its_owner_are_cancelled) {
    range_lock lock;
    const range_guard held = lock.try_lock(exclusive(0, 9));
    heard outcome;
    lock_args wanted = exclusive(0, 9);
    wanted.owner = &outcome;
    auto state = ex::connect(lock_of(lock, wanted), listener{&outcome, ex_queries::never_stop_token{}});
    ex::start(state);
    EXPECT_EQ(lock.cancel_all(&outcome), 1U);
    EXPECT_EQ(outcome.stops, 1);
}

TEST(lock_sender, holds_its_range_as_long_as_a_chain_keeps_the_guard) {
    range_lock lock;
    auto chain = lock_of(lock, exclusive(0, 9))  //
                 | ex::then([&](range_guard held) noexcept {
                       EXPECT_FALSE(lock.try_lock(exclusive(0, 0)));
                       return held.where().last();
                   });
    EXPECT_EQ(std::get<0>(ex_sync::sync_wait(std::move(chain)).value()), 9U);
    EXPECT_TRUE(lock.try_lock(exclusive(0, 0)));
}

TEST(lock_sender, waits_for_another_thread) {
    range_lock lock;
    range_guard held = lock.try_lock(exclusive(0, 9));
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        held.unlock();
    });
    EXPECT_TRUE(ex_sync::sync_wait(lock_of(lock, exclusive(5, 15))).has_value());
    other.join();
}

// Each round: one thread releases the range, another requests a stop, a third starts; the state is
// destroyed as soon as it has completed.
TEST(lock_sender, completes_once_when_start_grant_and_stop_race) {
    range_lock lock;
    std::atomic<int> ready{0};
    int grants = 0;
    int stops = 0;
    constexpr int rounds = 2000;
    const auto meet = [&ready](int round) {
        ready.fetch_add(1, std::memory_order_acq_rel);
        while (ready.load(std::memory_order_acquire) < 3 * (round + 1))
            std::this_thread::yield();
    };
    std::vector<range_guard> held(rounds);
    std::vector<ex_queries::inplace_stop_source> sources(rounds);
    for (int i = 0; i != rounds; ++i)
        held[static_cast<std::size_t>(i)] = lock.try_lock(
            exclusive(10 * static_cast<std::uint64_t>(i), 10 * static_cast<std::uint64_t>(i) + 9));
    std::thread giver([&] {
        for (int i = 0; i != rounds; ++i) {
            meet(i);
            held[static_cast<std::size_t>(i)].unlock();
        }
    });
    std::thread stopper([&] {
        for (int i = 0; i != rounds; ++i) {
            meet(i);
            sources[static_cast<std::size_t>(i)].request_stop();
        }
    });
    for (int i = 0; i != rounds; ++i) {
        heard outcome;
        const auto at = static_cast<std::size_t>(i);
        {
            auto state = ex::connect(lock_of(lock, exclusive(10 * at, 10 * at + 9)),
                                     listener{&outcome, sources[at].get_token()});
            meet(i);
            ex::start(state);
            while (outcome.completions() == 0)
                std::this_thread::yield();
        }
        ASSERT_EQ(outcome.completions(), 1);
        grants += outcome.grants;
        stops += outcome.stops;
    }
    giver.join();
    stopper.join();
    EXPECT_EQ(grants + stops, rounds);
    EXPECT_TRUE(lock.try_lock({.where = byte_range::whole()})) << "the range is still locked";
}

}  // namespace
}  // namespace sluice::sync

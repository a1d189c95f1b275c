#include "sluice/sync/completions.hpp"

#include <gtest/gtest.h>

#include <array>
#include <coroutine>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "sluice/base/small_stack_testing.hpp"
#include "sluice/sync/range_lock_awaiter_testing.hpp"
#include "sluice/sync/range_lock_sender.hpp"
#include "sluice/sync/range_lock_testing.hpp"
#include "tests/execution_model/execution.hpp"

SLUICE_EXECUTION_TRAITS(model, execution_model, execution_model, _t);

namespace sluice::sync {
namespace {

constexpr int many = 1'000'000;

// A request with a given completion.
class request_that final : public range_request {
public:
    request_that() = default;
    explicit request_that(std::function<void(bool)> what) : what_(std::move(what)) {}
    ~request_that() = default;
    void does(std::function<void(bool)> what) { what_ = std::move(what); }

private:
    void completed(bool is_granted) noexcept override { what_(is_granted); }
    std::function<void(bool)> what_;
};

// Two requests that pass one range to each other: each requests it again before it releases it.
struct hand_offs {
    range_lock lock;
    std::array<request_that, 2> requests;
    int grants = 0;

    void go_on(std::size_t which, bool is_granted) {
        ASSERT_TRUE(is_granted);
        const range_guard held = requests[which].take();
        if (++grants >= many) return;
        ASSERT_FALSE(lock.lock_async(requests[1 - which], exclusive(0, 9)));
    }
};

TEST(completions, of_requests_that_grant_each_other_need_a_bounded_stack) {
    hand_offs chain;
    for (const std::size_t which : {0U, 1U})
        chain.requests[which].does([&, which](bool is_granted) { chain.go_on(which, is_granted); });
    run_on_small_stack([&] {
        range_guard held = chain.lock.lock(exclusive(0, 9));
        ASSERT_FALSE(chain.lock.lock_async(chain.requests[0], exclusive(0, 9)));
        held.unlock();
    });
    EXPECT_EQ(chain.grants, many);
}

TEST(completions, of_requests_that_cancel_each_other_need_a_bounded_stack) {
    range_lock lock;
    const range_guard held = lock.lock(exclusive(0, 9));
    std::array<request_that, 2> requests;
    int cancels = 0;
    for (const std::size_t which : {0U, 1U}) {
        requests[which].does([&, which](bool is_granted) {
            ASSERT_FALSE(is_granted);
            if (++cancels >= many) return;
            request_that& other = requests[1 - which];
            ASSERT_FALSE(lock.lock_async(other, exclusive(0, 9)));
            ASSERT_TRUE(lock.cancel(other));
        });
    }
    run_on_small_stack([&] {
        ASSERT_FALSE(lock.lock_async(requests[0], exclusive(0, 9)));
        ASSERT_TRUE(lock.cancel(requests[0]));
    });
    EXPECT_EQ(cancels, many);
}

// Coroutines that run at once.
struct detached {
    struct promise_type {
        [[nodiscard]] detached get_return_object() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

detached lock_often(range_lock& lock, int count, int& grants) {
    for (int i = 0; i != count; ++i) {
        const range_guard held = co_await awaited_lock(lock, {.where = byte_range::whole()});
        if (held) ++grants;
    }
}

TEST(completions, of_coroutines_that_need_not_wait_need_a_bounded_stack) {
    range_lock lock;
    int grants = 0;
    run_on_small_stack([&] { lock_often(lock, many, grants); });
    EXPECT_EQ(grants, many);
}

TEST(completions, of_coroutines_that_grant_each_other_need_a_bounded_stack) {
    constexpr int coroutines = 100'000;
    range_lock lock;
    int grants = 0;
    run_on_small_stack([&] {
        range_guard held = lock.lock({.where = byte_range::whole()});
        for (int i = 0; i != coroutines; ++i)
            lock_often(lock, 10, grants);
        EXPECT_EQ(grants, 0);
        held.unlock();
    });
    EXPECT_EQ(grants, 10 * coroutines);
}

// A sender's operation that starts the next one when it completes. Its guard is destroyed first or
// last.
struct sender_chain {
    struct receiver {
        using receiver_concept = execution_model::receiver_t;
        struct environment {
            execution_model::inplace_stop_token token;
            [[nodiscard]] auto query(execution_model::get_stop_token_t) const noexcept { return token; }
        };
        void set_value(range_guard held) && noexcept {
            held.unlock();
            chain->go_on();
        }
        void set_stopped() && noexcept { chain->go_on(); }
        [[nodiscard]] environment get_env() const noexcept { return {chain->source.get_token()}; }
        sender_chain* chain;
    };

    void go_on() noexcept {
        if (++completions >= many) return;
        auto& next = states[static_cast<std::size_t>(completions) % states.size()];
        next.reset();
        next.emplace(lock, exclusive(0, 9), receiver{this});
        next->start();
    }

    range_lock lock;
    execution_model::inplace_stop_source source;
    std::array<std::optional<detail::lock_operation<model, real_atomics, receiver>>, 64> states;
    int completions = -1;
};

TEST(completions, of_senders_that_need_not_wait_need_a_bounded_stack) {
    sender_chain chain;
    run_on_small_stack([&] { chain.go_on(); });
    EXPECT_EQ(chain.completions, many);
}

TEST(completions, of_senders_that_were_stopped_before_need_a_bounded_stack) {
    sender_chain chain;
    chain.source.request_stop();
    run_on_small_stack([&] { chain.go_on(); });
    EXPECT_EQ(chain.completions, many);
}

TEST(completions, above_the_deepest_level_have_run_when_the_call_that_causes_them_returns) {
    range_lock lock;
    constexpr auto depth = static_cast<int>(range_lock_tuning::nesting_max);
    std::deque<request_that> requests;
    int completed = 0;
    std::vector<int> completed_within;  // of each, in the order of the returns
    range_guard held = lock.lock(exclusive(0, 9));
    for (int i = 0; i != depth + 3; ++i) {
        request_that& mine = requests.emplace_back();
        mine.does([&](bool) {
            ++completed;
            const int before = completed;
            mine.take().unlock();
            completed_within.push_back(completed - before);
        });
        ASSERT_FALSE(lock.lock_async(mine, exclusive(0, 9)));
    }
    held.unlock();
    EXPECT_EQ(completed, depth + 3);
    // The deepest one and those after it saw nothing; each above saw all later ones.
    std::vector<int> expected(4, 0);
    for (int i = 0; i != depth - 1; ++i)
        expected.push_back(4 + i);
    EXPECT_EQ(completed_within, expected);
}

TEST(completions, that_wait_first_run_the_queue_of_their_thread) {
    basic_range_lock<hot_atomics> lock;  // one level
    struct releasing final : basic_range_request<hot_atomics> {
        ~releasing() = default;
        void completed(bool) noexcept override { take().unlock(); }
    } next;
    struct blocking final : basic_range_request<hot_atomics> {
        ~blocking() = default;
        explicit blocking(basic_range_lock<hot_atomics>& from) : lock(from) {}
        void completed(bool) noexcept override {
            take().unlock();  // grants the other one, whose completion is queued
            is_locked = static_cast<bool>(lock.lock(exclusive(0, 9)));
        }
        basic_range_lock<hot_atomics>& lock;
        bool is_locked = false;
    } first(lock);
    basic_range_guard<hot_atomics> held = lock.lock(exclusive(0, 9));
    ASSERT_FALSE(lock.lock_async(first, exclusive(0, 9)));
    ASSERT_FALSE(lock.lock_async(next, exclusive(0, 9)));
    held.unlock();
    EXPECT_TRUE(first.is_locked);
    EXPECT_TRUE(lock.try_lock(exclusive(0, 9)));
}

TEST(completions_death, stop_the_program_if_a_queued_request_is_destroyed) {
    const auto destroy_queued = [] {
        basic_range_lock<hot_atomics> lock;  // one level
        auto doomed = std::make_unique<basic_remembered_request<hot_atomics>>();
        struct destroying final : basic_range_request<hot_atomics> {
            ~destroying() = default;
            void completed(bool) noexcept override {
                (void)lock->cancel(**doomed);
                doomed->reset();
            }
            basic_range_lock<hot_atomics>* lock;
            std::unique_ptr<basic_remembered_request<hot_atomics>>* doomed;
        } first;
        first.lock = &lock;
        first.doomed = &doomed;
        basic_range_guard<hot_atomics> held = lock.lock(exclusive(0, 9));
        (void)lock.lock_async(first, exclusive(0, 9));
        (void)lock.lock_async(*doomed, exclusive(0, 9));
        held.unlock();
    };
    EXPECT_DEATH(destroy_queued(), "a request lives until it is completed");
}

TEST(completions, may_destroy_the_lock_when_they_have_released_it) {
    auto lock = std::make_unique<range_lock>();
    request_that last;
    last.does([&](bool) {
        last.take().unlock();
        lock.reset();
    });
    range_guard held = lock->lock(exclusive(0, 9));
    ASSERT_FALSE(lock->lock_async(last, exclusive(0, 9)));
    held.unlock();
    EXPECT_EQ(lock, nullptr);
}

}  // namespace
}  // namespace sluice::sync

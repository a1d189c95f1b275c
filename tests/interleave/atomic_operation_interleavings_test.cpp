#include <gtest/gtest.h>

#include <deque>

#include "sluice/io/sender/atomic_state.hpp"
#include "tests/interleave/simulated_engine.hpp"

// An operation that any thread can start and cancel, against its completion, in every order with
// few preemptions. The functions are those of atomic_sender.cpp.

namespace sluice::interleave {
namespace {

using state = io::atomic_state<scheduled_atomics::atomic<std::uint32_t>>;

// --- on a multiplexer for several threads

/// A rule that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char {
    none,
    ignores_early_cancel,  // the result of begin() for an earlier cancellation
    opens_too_early,       // cancellations are sent to the multiplexer before it has the operation
    publishes_unchecked    // the operation begins although it was cancelled before
};

class started_anywhere final : public scenario {
public:
    started_anywhere(bool completes, fault left_out) : left_out_(left_out), engine_(completes) {}

    std::vector<std::function<void()>> threads() override {
        return {[this] { start(); }, [this] { cancel(); }, [this] { run(); }};
    }
    std::string verdict() override {
        if (dones_ != 1) return "done was not signalled exactly once";
        if (state_.is_pending()) return "pending after done";
        return {};
    }

private:
    // atomic_operation::begin_here().
    void start() {
        if (not state_.claim()) return;
        has_claimed_ = true;
        record_change();
        wake_all_on(&has_claimed_);
        bool may_begin = true;
        if (left_out_ == fault::opens_too_early) may_begin = state_.begin();
        engine_.begin();
        if (left_out_ != fault::opens_too_early) may_begin = state_.begin();
        if (not may_begin and left_out_ != fault::ignores_early_cancel) engine_.cancel();
        engine_.publish(left_out_ != fault::publishes_unchecked);
    }
    void cancel() {
        while (not has_claimed_)
            sleep_on(&has_claimed_, false);
        if (state_.cancel(true) == state::cancel_step::cancel_io) engine_.cancel();
    }
    void run() {
        (void)engine_.run();
        state_.value();
        if (state_.end()) ++dones_;
    }

    fault left_out_;
    state state_;
    simulated_engine engine_;
    bool has_claimed_ = false;
    int dones_ = 0;
};

report explored(bool completes, fault left_out) {
    return explore([=] { return std::make_unique<started_anywhere>(completes, left_out); });
}

TEST(atomic_operation_interleavings, on_several_threads_ends_once_and_no_cancellation_is_lost) {
    for (const bool completes : {false, true}) {
        const report found = explored(completes, fault::none);
        EXPECT_EQ(found.problem, "") << completes;
        EXPECT_TRUE(found.is_complete);
        EXPECT_GT(found.schedules, 50U);
    }
}

TEST(atomic_operation_interleavings, ignoring_a_cancellation_before_the_start_is_detected) {
    EXPECT_NE(explored(false, fault::ignores_early_cancel).problem, "");
}

TEST(atomic_operation_interleavings, sending_cancellations_too_early_is_detected) {
    EXPECT_NE(explored(false, fault::opens_too_early).problem, "");
}

TEST(atomic_operation_interleavings, beginning_a_cancelled_operation_is_detected) {
    EXPECT_NE(explored(false, fault::publishes_unchecked).problem, "");
}

// --- on a multiplexer for one thread, which receives items from the others

enum class owner_fault : unsigned char {
    none,
    ends_under_item,  // done is signalled although the cancel item is queued
    forgets_done,     // the cancel item does not signal it either
    starts_refused,   // an operation that was cancelled before begins
    posts_always      // the item is pushed in every state
};

class started_elsewhere final : public scenario {
public:
    explicit started_elsewhere(owner_fault left_out) : left_out_(left_out) {}

    std::vector<std::function<void()>> threads() override {
        return {[this] { start(); }, [this] { cancel(); }, [this] { cancel(); }, [this] { own(); }};
    }
    std::string verdict() override {
        if (dones_ != 1) return "done was not signalled exactly once";
        return problem_;
    }

private:
    enum class item : unsigned char { start, cancel };

    void post(item one) {
        step();
        if (is_gone_) problem_ = "an item of a destroyed state was pushed";
        items_.push_back(one);
        record_change();
        wake_all_on(&items_);
    }
    void start() {
        if (state_.claim()) post(item::start);
    }
    void cancel() {
        const state::cancel_step then = state_.cancel(false);
        if (then == state::cancel_step::post_item or left_out_ == owner_fault::posts_always)
            post(item::cancel);
    }
    // The loop. The I/O ends when no other work is left, or because it is cancelled.
    void own() {
        while (not is_gone_) {
            step();
            if (not items_.empty()) {
                const item next = items_.front();
                items_.pop_front();
                next == item::start ? begin() : on_cancel_item();
            } else if (has_io_) {
                complete();
            } else {
                sleep_on(&items_, false);
            }
        }
        if (not items_.empty()) problem_ = "done was signalled while an item was queued";
    }
    void begin() {
        const bool may_begin = state_.begin();
        was_cancelled_ = not may_begin;
        if (may_begin or left_out_ == owner_fault::starts_refused) {
            has_io_ = true;
            if (was_cancelled_) problem_ = "an operation has begun although it was cancelled before";
        } else {
            complete();
        }
    }
    void on_cancel_item() {
        switch (state_.cancel_arrived()) {
            case state::arrival_step::nothing:
                break;
            case state::arrival_step::cancel_io:
                complete();
                break;
            case state::arrival_step::signal_done:
                if (left_out_ != owner_fault::forgets_done) done();
                break;
        }
    }
    void complete() {
        has_io_ = false;
        state_.value();
        if (state_.end() or left_out_ == owner_fault::ends_under_item) done();
    }
    void done() {
        ++dones_;
        is_gone_ = true;
    }

    owner_fault left_out_;
    state state_;
    std::deque<item> items_;
    bool has_io_ = false;
    bool was_cancelled_ = false;
    bool is_gone_ = false;
    int dones_ = 0;
    std::string problem_;
};

report explored(owner_fault left_out) {
    return explore([=] { return std::make_unique<started_elsewhere>(left_out); });
}

TEST(atomic_operation_interleavings, on_one_thread_ends_once_and_leaves_no_item_behind) {
    const report found = explored(owner_fault::none);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 100U);
}

TEST(atomic_operation_interleavings, signalling_done_before_a_queued_item_is_detected) {
    EXPECT_NE(explored(owner_fault::ends_under_item).problem, "");
}

TEST(atomic_operation_interleavings, forgetting_done_when_the_item_runs_is_detected) {
    EXPECT_NE(explored(owner_fault::forgets_done).problem, "");
}

TEST(atomic_operation_interleavings, pushing_an_item_without_its_mark_is_detected) {
    EXPECT_NE(explored(owner_fault::posts_always).problem, "");
}

TEST(atomic_operation_interleavings, starting_a_cancelled_operation_is_detected) {
    EXPECT_NE(explored(owner_fault::starts_refused).problem, "");
}

}  // namespace
}  // namespace sluice::interleave

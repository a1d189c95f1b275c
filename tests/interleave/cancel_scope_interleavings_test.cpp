#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "sluice/io/task/scope_tree.hpp"
#include "tests/interleave/simulated_engine.hpp"

// A coroutine that waits for an operation in its own scope, while another thread cancels the
// enclosing scope, and the loop completes the operation: in every order with few preemptions. The
// functions are those of cancel_scope.cpp and of io_multiplexer_threads.cpp (start_or_finish,
// publish).

namespace sluice::interleave {
namespace {

/// A rule that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char {
    none,
    begins_at_once,         // the operation may complete before the coroutine is suspended
    publishes_unchecked,    // the operation begins although it was cancelled before
    leaves_unlocked,        // without the lock of the scopes
    destroyed_unlocked,     // the same
    stays_in_scope,         // the coroutine is resumed before its operation has left the scope
    asks_before_it_enters,  // the cancellation of the scope is not checked again after entering it
};

// If `is_blind`, a thread does not see that another one has set it.
struct flag : scheduled_atomics::atomic<bool> {
    using scheduled_atomics::atomic<bool>::atomic;
    [[nodiscard]] bool load(std::memory_order order) const noexcept {
        const bool is_set = scheduled_atomics::atomic<bool>::load(order);
        return is_set and not is_blind;
    }
    static inline bool is_blind = false;
};

struct waiting_operation {
    explicit waiting_operation(bool completes) noexcept : engine(completes) {}
    // cancel() continues from this entry to the next one afterwards.
    void end() noexcept {
        engine.cancel();
        (void)is_there.load(std::memory_order_relaxed);
    }

    simulated_engine engine;
    scheduled_atomics::atomic<bool> is_there{true};
    list_hook<waiting_operation> link;
};
using tree = io::scope_tree<waiting_operation, &waiting_operation::link, flag>;

class waiting final : public scenario {
public:
    waiting(bool completes, fault left_out) : completes_(completes), left_out_(left_out) {
        inner_.emplace();
        inner_->nest_in(outer_);
        operation_.emplace(completes);
    }

    std::vector<std::function<void()>> threads() override {
        return {[this] { await(); }, [this] { cancel(); }, [this] { run(); }};
    }
    std::string verdict() override {
        if (coroutine_.resumptions() != 1) return "the coroutine was not resumed exactly once";
        if (coroutine_.was_early()) return "the coroutine was resumed before it was suspended";
        outer_.leave_all();
        if (not completes_ and code_ != ECANCELED) return "it ended without a reason";
        if (was_cut_short_ != (code_ == ECANCELED)) return "has_cut_short() is wrong";
        return {};
    }

private:
    // The coroutine: operation_awaiter, and the end of its frame once it is resumed.
    void await() {
        if (inner_->is_cancelled()) {
            is_refused_ = true;
            record_change();
            wake_all_on(&is_refused_);
            with_scopes([this] { inner_->record_cut_short(); });
            coroutine_.suspend();
            code_ = ECANCELED;
            coroutine_.resume();
        } else {
            begin_and_suspend();
            coroutine_.wait();
        }
        operation_.reset();
        was_cut_short_ = inner_->has_cut_short();
        with_scopes([this] { inner_->leave_all(); }, left_out_ != fault::destroyed_unlocked);
        inner_.reset();
    }
    void begin_and_suspend() {
        waiting_operation& op = *operation_;
        op.engine.begin();
        has_begun_ = true;
        record_change();
        wake_all_on(&is_refused_);
        if (left_out_ == fault::begins_at_once) op.engine.publish();
        step();
        coroutine_.suspend();
        with_scopes([&] { enter(op); });
        if (left_out_ != fault::begins_at_once)
            op.engine.publish(left_out_ != fault::publishes_unchecked);  // it may be destroyed now
    }
    void enter(waiting_operation& op) {
        flag::is_blind = left_out_ == fault::asks_before_it_enters;
        inner_->enter(op);
        flag::is_blind = false;
    }
    void cancel() {
        with_scopes([this] { outer_.cancel(); });
    }
    // The loop: awaited::resume_waiter() in the done signal.
    void run() {
        while (not has_begun_ and not is_refused_)
            sleep_on(&is_refused_, false);
        if (is_refused_) return;
        code_ = operation_->engine.run();
        if (left_out_ == fault::stays_in_scope) coroutine_.resume();
        with_scopes(
            [this] {
                inner_->leave(*operation_);
                if (code_ == ECANCELED and inner_->is_cancelled()) inner_->record_cut_short();
            },
            left_out_ != fault::leaves_unlocked);
        if (left_out_ != fault::stays_in_scope) coroutine_.resume();
    }
    template <class Work>
    void with_scopes(Work&& work, bool locks = true) {
        if (locks) lock_.lock();
        work();
        if (locks) lock_.unlock();
    }

    bool completes_;
    fault left_out_;
    simulated_lock lock_;  // shared by all scopes
    tree outer_;
    std::optional<tree> inner_;
    std::optional<waiting_operation> operation_;
    simulated_coroutine coroutine_;
    bool has_begun_ = false;
    bool is_refused_ = false;
    bool was_cut_short_ = false;
    int code_ = 0;
};

report explored(bool completes, fault left_out) {
    return explore([=] { return std::make_unique<waiting>(completes, left_out); });
}

TEST(cancel_scope_interleavings, a_coroutine_is_resumed_once_and_no_cancellation_is_lost) {
    for (const bool completes : {false, true}) {
        const report found = explored(completes, fault::none);
        EXPECT_EQ(found.problem, "") << completes;
        EXPECT_TRUE(found.is_complete) << found.schedules;
        EXPECT_GT(found.schedules, 100U);
    }
}

TEST(cancel_scope_interleavings, publishing_a_cancelled_operation_is_detected) {
    EXPECT_NE(explored(false, fault::publishes_unchecked).problem, "");
}

TEST(cancel_scope_interleavings, checking_only_before_entering_is_detected) {
    EXPECT_NE(explored(false, fault::asks_before_it_enters).problem, "");
}

TEST(cancel_scope_interleavings, beginning_before_the_coroutine_is_suspended_is_detected) {
    EXPECT_DEATH(abort_if_found(explored(true, fault::begins_at_once)), "");
}

TEST(cancel_scope_interleavings, resuming_before_leaving_the_scope_is_detected) {
    EXPECT_DEATH(abort_if_found(explored(true, fault::stays_in_scope)), "");
}

TEST(cancel_scope_interleavings, scopes_without_their_lock_are_detected) {
    EXPECT_DEATH(abort_if_found(explored(true, fault::leaves_unlocked)), "");
    EXPECT_DEATH(abort_if_found(explored(true, fault::destroyed_unlocked)), "");
}

}  // namespace
}  // namespace sluice::interleave

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "sluice/io/task/late_waiter.hpp"
#include "sluice/io/task/scope_tree.hpp"
#include "tests/interleave/simulated_engine.hpp"

// with_deadline(): the work ends on one thread while the deadline passes on another, in every order
// with few preemptions. The functions are those of with_deadline.cpp.

namespace sluice::interleave {
namespace {

/// A rule that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char {
    none,
    does_not_stop,      // the coroutine continues without waiting for the alarm
    stops_unseen,       // the alarm resumes only a waiter that it saw before it
                        // signalled that it is done
    destroys_early,     // the frame is destroyed before the coroutine is resumed
    cancels_after_done  // the alarm cancels the scope after its done signal
};

struct entry {
    static void end() noexcept {}
    list_hook<entry> link;
};
using flag = scheduled_atomics::atomic<bool>;
using tree = io::scope_tree<entry, &entry::link, flag>;

// The frame of with_deadline(), destroyed when it ends.
struct frame {
    tree scope;
    io::late_waiter<scheduled_atomics::atomic<void*>> alarm;
    simulated_engine sleep{true};
    bool has_fired = false;
};

class limited final : public scenario {
public:
    explicit limited(fault left_out) : left_out_(left_out) { frame_->sleep.begin(); }

    std::vector<std::function<void()>> threads() override {
        return {[this] { end_work(); }, [this] { pass_deadline(); }};
    }
    std::string verdict() override {
        if (coroutine_.resumptions() > 1) return "the coroutine was resumed twice";
        return {};
    }

private:
    // The work has ended: scope_alarm::stop(), then the frame of with_deadline() is destroyed.
    void end_work() {
        frame_->sleep.publish();
        step();
        frame_->sleep.cancel();
        if (left_out_ != fault::does_not_stop) {
            coroutine_.suspend();
            is_waiting_ = true;
            if (frame_->alarm.wait(&coroutine_) and left_out_ != fault::destroys_early) coroutine_.wait();
        }
        lock_.lock();
        frame_->scope.leave_all();
        lock_.unlock();
        frame_.reset();
    }
    // The signals of the alarm.
    void pass_deadline() {
        const int code = frame_->sleep.run();
        if (left_out_ != fault::cancels_after_done) signal_value(code);
        const bool was_waiting = is_waiting_;
        void* const waiter = frame_->alarm.signal();
        if (left_out_ == fault::stops_unseen ? was_waiting : waiter != nullptr) coroutine_.resume();
        if (left_out_ == fault::cancels_after_done) signal_value(code);
    }
    void signal_value(int code) {
        if (code != 0 or frame_->scope.is_cancelled()) return;
        frame_->has_fired = true;
        lock_.lock();
        frame_->scope.cancel();
        lock_.unlock();
    }

    fault left_out_;
    simulated_lock lock_;  // shared by all scopes
    std::optional<frame> frame_{std::in_place};
    simulated_coroutine coroutine_;
    bool is_waiting_ = false;
};

report explored(fault left_out) {
    return explore([=] { return std::make_unique<limited>(left_out); });
}

TEST(alarm_interleavings, the_frame_is_destroyed_after_the_alarm_and_the_coroutine_is_resumed_once) {
    const report found = explored(fault::none);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 30U);
}

TEST(alarm_interleavings, resuming_only_a_waiter_seen_before_is_detected) {
    EXPECT_NE(explored(fault::stops_unseen).problem, "");
}

TEST(alarm_interleavings, a_frame_destroyed_before_its_alarm_is_detected) {
    for (const fault left_out : {fault::does_not_stop, fault::destroys_early, fault::cancels_after_done})
        EXPECT_DEATH((void)explored(left_out), "used after its destruction") << static_cast<int>(left_out);
}

}  // namespace
}  // namespace sluice::interleave

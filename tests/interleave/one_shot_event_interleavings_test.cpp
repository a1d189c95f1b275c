#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "tests/interleave/scheduler.hpp"
#include "tests/interleave/simulated_engine.hpp"

namespace sluice::interleave {
namespace {

using explored_event = smb::server::basic_one_shot_event<int, scheduled_atomics>;

// A coroutine that only waits for an event.
struct waiting_coroutine {
    struct promise_type {
        waiting_coroutine get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::abort(); }
    };
};

// Each of these breaks the protocol, and the exploration detects it.
enum class fault : unsigned char {
    none,
    destroyed_in_list,  // the waiter does not leave the monitor before it destroys the event
    sets_unlocked,      // a setter sets an event that it has found after it has unlocked the mutex
};

// A waiter waits for an event of a monitor, and destroys it afterwards; two setters find the event
// in the monitor. An interrupt comes from the loop of the waiter, independently of the monitor.
class one_waiter final : public scenario {
public:
    explicit one_waiter(fault which) : fault_(which) { event_.emplace(*loop_); }

    std::vector<std::function<void()>> threads() override {
        return {[this] { run_loop(); }, [this] { set(1); }, [this] { set(2); }};
    }
    std::string verdict() override {
        if (resumptions_ != 1) return "the waiter was not resumed exactly once";
        if (value_ != 1 and value_ != 2) return "the waiter received a value that was not set";
        return {};
    }

private:
    static waiting_coroutine wait(one_waiter& self) {
        self.value_ = co_await self.event_->wait();
        self.leave();
        self.event_.reset();
        ++self.resumptions_;
    }
    // The thread of the loop: runs posted items.
    void run_loop() {
        (void)wait(*this);
        while (resumptions_ == 0) {
            if (loop_->invoke_posted_items().value_or(0) == 0) sleep_on(this, false);
        }
    }
    void leave() {
        if (fault_ == fault::destroyed_in_list) return;
        lock_.lock();
        is_listed_ = false;
        lock_.unlock();
    }
    void set(int value) {
        lock_.lock();
        const bool is_found = is_listed_;
        explored_event* const found = is_found ? &*event_ : nullptr;
        bool posts = false;
        if (fault_ != fault::sets_unlocked and is_found) posts = found->set_only(value);
        lock_.unlock();
        if (fault_ == fault::sets_unlocked and is_found) posts = found->set_only(value);
        if (not posts) return;
        step();
        found->post();
        record_change();
        wake_all_on(this);
    }

    fault fault_;
    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    simulated_lock lock_;  // the monitor's mutex
    bool is_listed_ = true;
    std::optional<explored_event> event_;
    int value_ = 0;
    int resumptions_ = 0;
};

report explored(fault which) {
    return explore([=] { return std::make_unique<one_waiter>(which); });
}

TEST(event_interleavings, the_waiter_is_resumed_once_and_may_then_destroy_the_event) {
    const report found = explored(fault::none);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 20U);
}

TEST(event_interleavings, destroying_the_event_in_the_list_is_detected) {
    EXPECT_DEATH(abort_if_found(explored(fault::destroyed_in_list)), "");
}

TEST(event_interleavings, setting_without_the_mutex_is_detected) {
    EXPECT_DEATH(abort_if_found(explored(fault::sets_unlocked)), "");
}

}  // namespace
}  // namespace sluice::interleave

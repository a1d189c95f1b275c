#include "sluice/smb/server/core/one_shot_event.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"

namespace sluice::smb::server {
namespace {

struct listed_event {
    explicit listed_event(io::io_multiplexer& loop) noexcept : woken(loop) {}
    one_shot_event<int> woken;
    bool is_listed = false;
    list_hook<listed_event> link;
};

// The events that setters of other threads find.
class events_of_monitor {
public:
    void enter(listed_event& one) {
        const lock_guard held(mutex_);
        list_.push_back(one);
        one.is_listed = true;
    }
    void leave(listed_event& one) {
        const lock_guard held(mutex_);
        if (std::exchange(one.is_listed, false)) list_.erase(one);
    }
    void set_all(int value) {
        event_wakes<int> woken;
        const lock_guard held(mutex_);
        for (listed_event& one : list_)
            woken.set(one.woken, value);
    }
    void stop() { is_stopped_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool is_stopped() const { return is_stopped_.load(std::memory_order_relaxed); }

private:
    ranked_mutex<lock_rank::leaf> mutex_;
    intrusive_list<listed_event, &listed_event::link> list_ SLUICE_GUARDED_BY(mutex_);
    std::atomic<bool> is_stopped_{false};
};

io::task<int> wait_once(io::io_multiplexer& loop, events_of_monitor& at) {
    listed_event mine(loop);
    at.enter(mine);
    const int value = co_await mine.woken.wait();
    at.leave(mine);
    co_return value;
}

TEST(event, wakes_a_waiter_once_for_setters_on_other_threads) {
    const std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    events_of_monitor at;
    std::thread one([&at] {
        while (not at.is_stopped())
            at.set_all(1);
    });
    std::thread other([&at] {
        while (not at.is_stopped())
            at.set_all(2);
    });
    for (int i = 0; i != 2000; ++i) {
        const int value = io::sync_wait(*loop, wait_once(*loop, at));
        EXPECT_TRUE(value == 1 or value == 2);
    }
    at.stop();
    one.join();
    other.join();
}

TEST(event, keeps_its_first_value) {
    const std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    one_shot_event<int> happened(*loop);
    EXPECT_FALSE(happened.value().has_value());
    happened.set(-7);
    happened.set(8);
    EXPECT_EQ(happened.value(), -7);
    happened.reset();
    EXPECT_FALSE(happened.is_set());
}

}  // namespace
}  // namespace sluice::smb::server

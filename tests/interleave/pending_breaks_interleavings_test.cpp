#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "sluice/base/thread_safety.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/pending_breaks.hpp"
#include "sluice/sync/small_mutex.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

class SLUICE_CAPABILITY("mutex") explored_mutex {
public:
    void lock() noexcept SLUICE_ACQUIRE() { of_.lock(); }
    void unlock() noexcept SLUICE_RELEASE() { of_.unlock(); }

private:
    sync::basic_small_mutex<scheduled_atomics> of_;
};

using explored_breaks = smb::server::basic_pending_breaks<scheduled_atomics, explored_mutex>;

// A reply that depends on a decision waits until the breaks of that are sent; other breaks begin
// and end during that time.
class reply_after_breaks final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] { decide_and_send(0); }, [this] { decide_and_send(1); }, [this] { reply(); }};
    }
    std::string verdict() override {
        if (not is_sent_) return "a waiter is never woken";
        return is_early_ ? "a reply is sent before the break of the decision that it has seen" : "";
    }

private:
    void decide_and_send(std::size_t number) {
        breaks_.begin();
        is_decided_[number] = true;  // the section of the file ends
        step();
        has_sent_[number] = true;
        breaks_.end();
        record_change();
        wake_all_on(this);
    }
    // The loop of the reply.
    void reply() {
        step();
        const bool saw_first = is_decided_[0];
        const bool saw_second = is_decided_[1];
        io::task<void> waiting = breaks_.none_left(*loop_);
        run(std::move(waiting));
        is_early_ = (saw_first and not has_sent_[0]) or (saw_second and not has_sent_[1]);
        is_sent_ = true;
    }
    void run(io::task<void> what) {
        bool has_ended = false;
        io::task_group running(*loop_);
        running.spawn(record_end(std::move(what), has_ended));
        while (not has_ended)
            if (loop_->invoke_posted_items().value_or(0) == 0) sleep_on(this, false);
    }
    static io::task<void> record_end(io::task<void> what, bool& has_ended) {
        co_await std::move(what);
        has_ended = true;
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    explored_breaks breaks_;
    std::array<bool, 2> is_decided_{};
    std::array<bool, 2> has_sent_{};
    bool is_sent_ = false;
    bool is_early_ = false;
};

TEST(pending_breaks_interleavings, reply_follows_the_breaks_of_the_decisions_that_it_has_seen) {
    const report found = explore([] { return std::make_unique<reply_after_breaks>(); });
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 50U);
}

}  // namespace
}  // namespace sluice::interleave

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/call_threads.hpp"
#include "sluice/io/task/task_group.hpp"
#include "tests/interleave/scheduler.hpp"

// A call that its request cancels while a thread takes it out of the queue.

namespace sluice::interleave {
namespace {

// Each of these breaks the protocol, and the exploration detects it.
enum class fault : unsigned char {
    none,
    cancels_running_calls,  // a call that has begun is cancelled, too
};

/// The queue of call_threads, whose mutex makes each of its functions one step.
class explored_queue final : public io::call_executor {
public:
    explicit explored_queue(fault which) noexcept : fault_(which) {}

    void submit(io::queued_call& one) noexcept override {
        step();
        record_change();
        queue_.push_back(&one);
        wake_all_on(this);
    }
    bool cancel(io::queued_call& one) noexcept override {
        step();
        record_change();
        const bool is_queued = std::erase(queue_, &one) != 0;
        return is_queued or (fault_ == fault::cancels_running_calls and running_ == &one);
    }
    io::call_statistics statistics() const noexcept override { return {.queued = queue_.size()}; }

    /// The work of a thread: carries out calls until `is_over`.
    void work(const bool& is_over) {
        for (;;) {
            step();
            while (queue_.empty() and not is_over)
                sleep_on(this, false);
            if (queue_.empty()) return;
            running_ = queue_.front();
            queue_.pop_front();
            step();
            carry_out(*running_);
            running_ = nullptr;
            record_change();
            wake_all_on(&running_);
        }
    }
    [[nodiscard]] const void* progress() const noexcept { return &running_; }

private:
    fault fault_;
    std::deque<io::queued_call*> queue_;
    io::queued_call* running_ = nullptr;
};

class cancelled_request final : public scenario {
public:
    explicit cancelled_request(fault which) : queue_(which) {}

    std::vector<std::function<void()>> threads() override {
        return {[this] { serve(); }, [this] { queue_.work(is_over_); }};
    }
    std::string verdict() override {
        if (resumptions_ != 2) return "a request is not resumed exactly once for each call";
        if (outcome_.has_value() != (calls_ == 2)) return "the outcome is not that of the call";
        return {};
    }

private:
    // The loop: one call to its end, and one that is cancelled at some time.
    void serve() {
        io::call_threads threads({.executor = &queue_});
        io::task_group requests(*loop_);
        io::call_cancellation kept;
        std::optional<int> first;
        requests.spawn(request(threads, kept, first));
        requests.spawn(request(threads, by_, outcome_));
        step();
        by_.cancel();
        while (requests.size() != 0)
            if (loop_->invoke_posted_items().value_or(0) == 0) sleep_on(queue_.progress(), false);
        is_over_ = true;
        record_change();
        wake_all_on(&queue_);
    }
    io::task<void> request(io::call_threads& on, io::call_cancellation& by, std::optional<int>& outcome) {
        outcome = co_await on.run(*loop_, &by, [this] { return ++calls_; });
        ++resumptions_;
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    explored_queue queue_;
    io::call_cancellation by_;
    std::optional<int> outcome_;
    int calls_ = 0;
    int resumptions_ = 0;
    bool is_over_ = false;
};

[[nodiscard]] report explored(fault which) {
    return explore([=] { return std::make_unique<cancelled_request>(which); });
}

TEST(call_cancellation_interleavings, call_is_carried_out_or_cancelled_and_its_request_resumed_once) {
    const report found = explored(fault::none);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 5U);
}

TEST(call_cancellation_interleavings, cancellation_of_a_running_call_is_detected) {
    EXPECT_DEATH(abort_if_found(explored(fault::cancels_running_calls)), "");
}

}  // namespace
}  // namespace sluice::interleave

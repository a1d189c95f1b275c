#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/loop/leadership.hpp"

// Internal to io: common definitions of the parts of a multiplexer for several threads; see
// io_multiplexer_threads.cpp.

namespace sluice::io {

// Guarded by its lock.
struct io_multiplexer::sharing {
    // An operation whose signals a thread gives, or that it abandons; on the thread's stack.
    struct holder {
        const detail::operation_record* what;
        const void* thread;
        list_hook<holder> link{};
    };
    using holders = intrusive_list<holder, &holder::link>;

    std::mutex lock;
    leadership<std::condition_variable> threads;
    time_point leader_until{};  // when the leader wakes by itself
    int busy = 0;
    holders signalling;  // few: one for each receiver that runs
    holders abandoning;

    // Returns whether another thread gives its signals.
    [[nodiscard]] bool is_signalled_elsewhere(const detail::operation_record& op) const noexcept {
        for (const holder& each : signalling)
            if (each.what == &op and each.thread != &thread_mark_) return true;
        return false;
    }
    [[nodiscard]] bool is_being_abandoned(const detail::operation_record& op) const noexcept {
        for (const holder& each : abandoning)
            if (each.what == &op) return true;
        return false;
    }
};

// Puts an operation into one of the two lists while this exists. For a thread that is inside when
// this is created and destroyed.
class io_multiplexer::held {
public:
    held(sharing::holders& among, const detail::operation_record& what) noexcept
        : among_(among), self_{.what = &what, .thread = &thread_mark_} {
        among_.push_back(self_);
    }
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held() { among_.erase(self_); }

private:
    sharing::holders& among_;
    sharing::holder self_;
};

// Lets other threads in while this exists.
class io_multiplexer::outside {
public:
    enum class why : std::uint8_t { call, item, receiver };

    outside(io_multiplexer& of, why reason) noexcept
        : of_(of), reason_(reason), around_(std::exchange(innermost_, this)), here_(of) {
        of_.leave();
    }
    outside(const outside&) = delete;
    outside& operator=(const outside&) = delete;
    ~outside() {
        (void)of_.enter();
        innermost_ = around_;
    }

    [[nodiscard]] bool is(const io_multiplexer& of, why reason) const noexcept {
        return &of_ == &of and reason_ == reason;
    }
    [[nodiscard]] const outside* around() const noexcept { return around_; }

private:
    io_multiplexer& of_;
    why reason_;
    const outside* around_;  // the one on this thread within which this is
    const runs_here here_;   // for handles that adopt it, and tasks that return to it
};

}  // namespace sluice::io

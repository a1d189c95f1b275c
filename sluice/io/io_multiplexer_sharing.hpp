#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/io/io_multiplexer.hpp"

// Internal to io: what the parts of a multiplexer for several threads have in common; see
// io_multiplexer_threads.cpp.

namespace sluice::io {

// On the stack of a thread that follows. Guarded by the lock.
struct io_multiplexer::waiting_thread {
    std::condition_variable signal;
    bool is_woken = false;  // and no longer in the list
    list_hook<waiting_thread> link;
};

// Guarded by its lock.
struct io_multiplexer::sharing {
    std::mutex lock;
    intrusive_list<waiting_thread, &waiting_thread::link> waiting;
    bool has_leader = false;
    bool is_asleep = false;     // the leader
    time_point leader_until{};  // when it wakes by itself
    int busy = 0;
    int on_their_way = 0;  // threads that were woken and have not had the lock since
};

// Lets others in while this exists.
class io_multiplexer::outside {
public:
    enum class why : std::uint8_t { call, item, receiver };

    outside(io_multiplexer& of, why reason) noexcept
        : of_(of), reason_(reason), around_(std::exchange(innermost_, this)) {
        if (not of.signals_all_in_start_) here_.emplace(of);
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
    // For handles that adopt it, and tasks that come home; not if no thread runs it.
    std::optional<runs_here> here_;
};

}  // namespace sluice::io

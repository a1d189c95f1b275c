#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "sluice/io/io_multiplexer.hpp"
#include "sluice/io/leadership.hpp"

// Internal to io: what the parts of a multiplexer for several threads have in common; see
// io_multiplexer_threads.cpp.

namespace sluice::io {

// Guarded by its lock.
struct io_multiplexer::sharing {
    std::mutex lock;
    leadership<std::condition_variable> threads;
    time_point leader_until{};  // when the leader wakes by itself
    int busy = 0;
};

// Lets others in while this exists.
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
    const runs_here here_;   // for handles that adopt it, and tasks that come home
};

}  // namespace sluice::io

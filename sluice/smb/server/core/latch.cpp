#include "sluice/smb/server/core/latch.hpp"

#include "sluice/io/task/sync_wait.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

namespace {

using sync::real_atomics;

// Some ten microseconds: longer than a command that stays within memory, shorter than the wake-up of a core.
constexpr unsigned looks_max = 400;

}  // namespace

void server_latch::lock_slowly() noexcept {
    for (unsigned look = 0; look != looks_max; ++look) {
        real_atomics::back_off(look % (real_atomics::spins_max / 2));
        std::uint32_t expected = free;
        // relaxed: only a check, so that the cache line stays with the holder until the latch is
        // free.
        if (state_.load(std::memory_order_relaxed) != free) continue;
        // acquire: as in lock().
        if (state_.compare_exchange_weak(expected, taken, std::memory_order_acquire,
                                         std::memory_order_relaxed))
            return;
    }
    sleeps_.fetch_add(1, std::memory_order_relaxed);  // a count, orders nothing
    // Taken as `awaited`, since others may sleep as well. acquire: as in lock().
    while (state_.exchange(awaited, std::memory_order_acquire) != free)
        real_atomics::wait(state_, awaited, real_atomics::time_point::max());
}

void server_latch::wake_next() noexcept {
    real_atomics::wake_one(state_);
}

io::task<void> latched(server_latch& latch, io::io_multiplexer& loop, io::task<void> work) noexcept {
    if (latch.is_mine()) co_await io::yield(loop);
    ENSURE(loop.is_owner() and not latch.is_mine(),
           "work begins on its loop while its thread does not hold the latch");
    const server_latch::hold held(latch);
    co_await std::move(work);
}

io::task<bool> pass(io::io_multiplexer& loop, deadline until) noexcept {
    ENSURE(loop.is_owner(), "a coroutine sleeps on its own loop");
    const auto slept = co_await io::co_sleep(loop, until);
    co_return slept.has_value();
}

io::task<void> next_turn(io::io_multiplexer& loop) noexcept {
    ENSURE(loop.is_owner(), "a coroutine goes on on its own loop");
    co_await io::yield(loop);
}

}  // namespace sluice::smb::server

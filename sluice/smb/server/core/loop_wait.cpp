#include "sluice/smb/server/core/loop_wait.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::smb::server {

io::task<bool> pass(io::io_multiplexer& loop, deadline until) noexcept {
    ENSURE(loop.is_owner(), "a coroutine sleeps on its own loop");
    const auto slept = co_await io::co_sleep(loop, until);
    co_return slept.has_value();
}

io::task<void> next_turn(io::io_multiplexer& loop) noexcept {
    ENSURE(loop.is_owner(), "a coroutine goes on on its own loop");
    co_await io::yield(loop);
}

io::task<void> later_turn(io::io_multiplexer& loop) noexcept {
    ENSURE(loop.is_owner(), "a coroutine goes on on its own loop");
    const std::uint64_t present = loop.turn();
    do {
        co_await io::yield(loop);
    } while (loop.turn() == present);
}

}  // namespace sluice::smb::server

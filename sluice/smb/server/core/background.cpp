#include "sluice/smb/server/core/background.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"

namespace sluice::smb::server {

namespace {

// Counts among the tasks at once, so that join() waits for it.
[[nodiscard]] io::task<void> from_next_turn(io::io_multiplexer& loop, io::task<void> work) noexcept {
    co_await io::yield(loop);
    ENSURE(loop.is_owner(), "the work of the background is done on its loop");
    co_await std::move(work);
}

}  // namespace

void background_work::spawn(io::task<void> work) noexcept {
    do_on(loop_, [this, given = std::move(work)]() mutable noexcept {
        ENSURE(loop_.is_owner(), "the tasks of the background are those of its loop");
        tasks_.spawn(from_next_turn(loop_, std::move(given)));
    });
}

}  // namespace sluice::smb::server

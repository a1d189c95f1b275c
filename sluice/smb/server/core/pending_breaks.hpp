#pragma once

#include <cstddef>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/event.hpp"
#include "sluice/smb/server/core/latch.hpp"

namespace sluice::smb::server {

/// Breaks that were decided, and that the loops of the connections they go to have not given to the kernel
/// yet.
///
/// What is answered after a break was decided may follow from it: that the file has gone, that data were
/// written. A client with two connections must not hear the answer on the one before the break on the other;
/// so no loop sends a reply made since while there are any. Breaks are rare, hence a count of all rather than
/// an order among them: a reply may wait for one that does not concern it, for as long as a loop takes to
/// turn. Thread safety: under the server's latch. Allocates: nothing.
class pending_breaks {
public:
    pending_breaks() noexcept = default;
    pending_breaks(const pending_breaks&) = delete;
    pending_breaks& operator=(const pending_breaks&) = delete;
    ~pending_breaks() { ENSURE(count_ == 0, "every break is sent before the server is destroyed"); }

    void begin() noexcept { ++count_; }
    void end() noexcept {
        ENSURE(count_ != 0, "a break ends once");
        if (--count_ != 0) return;
        for (waiter& one : waiters_)
            one.all_gone.set(true);
    }

    [[nodiscard]] bool any() const noexcept { return count_ != 0; }
    /// Waits until there is none, without the latch. Suspends; for nothing but that. On the caller's loop.
    [[nodiscard]] io::task<void> none_left(server_latch& latch, io::io_multiplexer& loop) noexcept {
        if (not any()) co_return;
        waiter mine(loop);
        waiters_.push_back(mine);
        (void)co_await unlatched(latch, mine.all_gone.wait());
        waiters_.erase(mine);
    }

private:
    struct waiter {
        explicit waiter(io::io_multiplexer& loop) noexcept : all_gone(loop) {}
        event<bool> all_gone;
        list_hook<waiter> link;
    };

    std::size_t count_ = 0;
    intrusive_list<waiter, &waiter::link> waiters_;
};

}  // namespace sluice::smb::server

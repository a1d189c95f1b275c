#pragma once

#include <memory>
#include <mutex>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Ends a sleep of a loop from any thread: how a request that waits without a thread of
/// its own gets to know that it is worth polling.
///
/// Shared by the request, by the thread that wakes it, and, while its end is posted, by the loop. Invariants:
///   1. `loop_` is null before attach() and after detach(); in between the loop and the operation exist.
///   2. While it is posted, `while_posted_` keeps it.
class wake_up final : private io::posted_item, public std::enable_shared_from_this<wake_up> {
public:
    /// Returns a new one, or null if there is no memory. Allocates: it.
    [[nodiscard]] static std::shared_ptr<wake_up> create() noexcept;

    /// The loop's thread: from now on wake() ends `sleeping`, which is about to be started. If wake() was
    /// called before, it ends as soon as the loop runs.
    void attach(io::io_multiplexer& loop, io::detail::operation_record& sleeping) noexcept;
    /// The loop's thread: returns whether wake() was called. Afterwards neither the loop nor the operation is
    /// touched.
    bool detach() noexcept;

    /// Any thread, at most once.
    void wake() noexcept;
    /// Whether wake() was called, for who polls and does not run the loop. Any thread.
    [[nodiscard]] bool was_woken() noexcept;

private:
    void post_with_mutex_held() noexcept;
    void invoke() noexcept override;

    std::mutex mutex_;  // guards what follows
    bool was_woken_ = false;
    io::io_multiplexer* loop_ = nullptr;
    std::shared_ptr<wake_up> while_posted_;
    // The loop's thread only.
    io::detail::operation_record* sleeping_ = nullptr;
};

}  // namespace sluice::fsmutex

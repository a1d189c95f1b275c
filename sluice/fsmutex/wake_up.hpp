#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "sluice/io/loop/external_work.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. What an operation waits for until any thread wakes it: how a request that waits
/// without a thread of its own is notified that it is worth polling.
///
/// Shared by the request and by the thread that wakes it. Invariant: `is_waiting_` is true from begin() until
/// wake(), end() or abandon(), and the one that clears it completes the operation.
class wake_up final : public io::external_work {
public:
    /// Returns a new one, or null if there is no memory. Allocates: it.
    [[nodiscard]] static std::shared_ptr<wake_up> create() noexcept;

    /// Any thread, at most once. The operation ends with success; if it begins later, then.
    void wake() noexcept;
    /// Whether wake() was called. Any thread.
    [[nodiscard]] bool was_woken() noexcept;

private:
    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override;
    void end() noexcept override;
    [[nodiscard]] bool abandon() noexcept override;

    std::mutex mutex_;  // guards what follows
    bool was_woken_ = false;
    bool is_waiting_ = false;
};

}  // namespace sluice::fsmutex

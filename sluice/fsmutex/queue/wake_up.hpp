#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "sluice/io/loop/external_work.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. An event that any thread signals and an operation waits for. It notifies a
/// request without a thread that it is worth polling.
///
/// Shared by the request and by the thread that wakes it. Invariant: `is_waiting_` is true from
/// begin() until wake(), end() or abandon(), and the caller that clears it completes the operation.
class wake_up final : public io::external_work {
public:
    /// Returns a new event, or null if there is no memory. Allocates: the event.
    [[nodiscard]] static std::shared_ptr<wake_up> create() noexcept;

    /// Signals the event. Any thread, at most once. The operation ends with success, also if it
    /// begins later.
    void wake() noexcept;
    /// Returns whether wake() was called. Any thread.
    [[nodiscard]] bool was_woken() noexcept;

private:
    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override;
    void end() noexcept override;
    [[nodiscard]] bool abandon() noexcept override;

    std::mutex mutex_;  // guards the members below
    bool was_woken_ = false;
    bool is_waiting_ = false;
};

}  // namespace sluice::fsmutex

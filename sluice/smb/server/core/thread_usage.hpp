#pragma once

#include <optional>

#include "sluice/base/clock.hpp"

namespace sluice::smb::server {

/// The state of a thread at one moment, as the kernel sees it.
struct thread_usage {
    bool is_runnable = false;           // it runs, or waits for a processor;
                                        // otherwise it sleeps in a call
    clock_source::duration cpu_time{};  // that it has used so far
};

/// Reports to a watchdog whether a thread computes, sleeps, or waits for a processor.
/// Thread safety: the watchdog's thread.
class thread_usage_source {
public:
    /// Returns the usage of the thread with the kernel's number `thread`, or
    /// std::nullopt if it is not known.
    /// Blocks: no; in particular, it does not wait for that thread.
    [[nodiscard]] virtual std::optional<thread_usage> of(int thread) noexcept = 0;

    thread_usage_source(const thread_usage_source&) = delete;
    thread_usage_source& operator=(const thread_usage_source&) = delete;

protected:
    thread_usage_source() noexcept = default;
    ~thread_usage_source() = default;
};

}  // namespace sluice::smb::server

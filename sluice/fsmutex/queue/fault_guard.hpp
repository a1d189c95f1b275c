#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sluice/base/result.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Keeps the process alive when a mapped file is truncated: an access to a
/// page after the end of the file raises SIGBUS. While it guards a map, the handler of that signal
/// replaces the whole map by private zeros, and sets the flag. The kernel then repeats the
/// instruction that faulted, which now succeeds. So users read the flag after each access.
///
/// The first guard installs the handler for the process, and it stays. A SIGBUS that is not the
/// kernel's report of a fault in a guarded map is passed on to the handler that was there before,
/// or ends the process as without one. See docs/decisions/0015-sigbus-in-mapped-mutexes.md.
///
/// Invariants:
/// 1. The handler reads atomics of a table of constant size, and calls mmap(2), sigaction(2) and
///    the previous handler. So it is safe in any thread at any instruction, also between the steps
///    of other threads that begin or end a guard.
/// 2. One word describes a map, so the handler never sees a partial description.
/// A fault still kills a thread that blocks SIGBUS. It kills any thread if the program later
/// installs another handler that does not call the previous one. Thread safety: any thread.
/// Move-only.
class fault_guard {
public:
    /// Guards `map`, which begins with a page and is unmapped after the guard is destroyed. `flag`
    /// is inside the map, or outlives the guard. Errors: ENOMEM if limits::guarded_maps_max are
    /// guarded; those of sigaction(2). Allocates: nothing. Complexity: O(guarded maps).
    [[nodiscard]] static result<fault_guard> over(std::span<std::byte> map,
                                                  volatile std::uint32_t& flag) noexcept;
    fault_guard() noexcept = default;
    fault_guard(fault_guard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    fault_guard& operator=(fault_guard&& other) noexcept {
        std::swap(entry_, other.entry_);
        return *this;
    }
    ~fault_guard();

    struct entry;

private:
    explicit fault_guard(entry* of) noexcept : entry_(of) {}

    entry* entry_ = nullptr;
};

}  // namespace sluice::fsmutex

#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "sluice/base/result.hpp"

namespace sluice::fsmutex {

/// The identity of this process, with which another can find out whether it is still alive. Read
/// when a mutex is opened. Thread safety: a value.
struct process_identity {
    std::array<char, 64> host{};     // its name, ended by a zero
    std::array<char, 36> boot_id{};  // the kernel's, a UUID in text
    std::uint32_t id = 0;            // in its namespace
    std::uint64_t start_time = 0;    // in clock ticks since boot: distinguishes
                                     // processes with one id
    std::uint64_t namespaces = 0;    // identifies the namespaces of ids and times

    [[nodiscard]] std::string_view host_name() const noexcept { return host.data(); }
    [[nodiscard]] std::string_view boot() const noexcept { return {boot_id.data(), boot_id.size()}; }

    /// Returns the identity of this process. Errors: those of reading /proc, which must be mounted.
    /// Allocates: nothing.
    [[nodiscard]] static result<process_identity> of_this_process() noexcept;
};

/// Returns whether a process is certainly dead: it is of this boot and of the same namespaces (of
/// ids and of times, which define the start time), and no process with this id started at that
/// time. Complexity: a few system calls. Allocates: nothing.
[[nodiscard]] bool is_surely_dead(std::uint32_t id, std::uint64_t start_time) noexcept;

}  // namespace sluice::fsmutex

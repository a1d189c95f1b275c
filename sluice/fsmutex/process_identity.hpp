#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "sluice/base/result.hpp"

namespace sluice::fsmutex {

/// Which process this is, so that another can find out whether it still lives. Read when a mutex is opened.
/// Thread safety: a value.
struct process_identity {
    std::array<char, 64> host{};     // its name, ended by a zero
    std::array<char, 36> boot_id{};  // of the kernel, a UUID in text
    std::uint32_t id = 0;            // in its namespace
    std::uint64_t start_time = 0;    // in clock ticks since boot: tells processes of one id apart
    std::uint64_t namespaces = 0;    // which ids and times these are; the same in the same ones

    [[nodiscard]] std::string_view host_name() const noexcept { return host.data(); }
    [[nodiscard]] std::string_view boot() const noexcept { return {boot_id.data(), boot_id.size()}; }

    /// Errors: those of reading /proc, which must be there. Allocates: nothing.
    [[nodiscard]] static result<process_identity> of_this_process() noexcept;
};

/// Whether a process is gone for sure: of this boot, of the same namespaces (of ids and of times, in which
/// the start time counts), and nobody lives there who began at that time. Complexity: a few system calls.
/// Allocates: nothing.
[[nodiscard]] bool is_surely_dead(std::uint32_t id, std::uint64_t start_time) noexcept;

}  // namespace sluice::fsmutex

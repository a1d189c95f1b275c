#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::vfs {

/// The faults that the volume simulates, generated from a seed, so that a run can be repeated.
/// Probabilities are in thousandths.
struct memory_faults {
    std::uint64_t seed = 1;
    std::uint32_t read_fails = 0;             // EIO
    std::uint32_t write_fails = 0;            // EIO
    std::uint32_t create_fails = 0;           // ENOSPC
    std::uint32_t status_fails = 0;           // EIO
    std::chrono::nanoseconds delay_max{0};    // largest delay before a transfer or a flush
    bool transfers_at_once = false;           // of files, as on hosts: other calls run in between
    bool (*is_stopped)() noexcept = nullptr;  // while it returns true, every change fails: EIO
};

struct memory_volume_options {
    bool read_only = false;
    std::string label = "memory";
    std::uint64_t serial = 0x51'1ce;
    std::uint64_t capacity_bytes = 1ULL << 30;
    std::uint64_t stream_bytes_max = 1U << 20;
    memory_faults faults{};
    bool emulates_block_sharing = false;  // clone_to copies where it has to share blocks
};

}  // namespace sluice::vfs

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/smb/server/read_path.hpp"

namespace sluice::smb::server {

/// How often each path was taken, and what went along it, since the loop began.
/// Thread safety: written by the loop's thread alone.
struct path_counters {
    struct counts {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
    };

    void add(read_path taken, std::size_t bytes) noexcept {
        counts& one = reads[static_cast<std::size_t>(taken)];
        ++one.requests;
        one.bytes += bytes;
    }
    void add_write(std::size_t bytes) noexcept {
        ++writes.requests;
        writes.bytes += bytes;
    }
    [[nodiscard]] const counts& of(read_path which) const noexcept {
        return reads[static_cast<std::size_t>(which)];
    }

    std::array<counts, read_paths> reads{};  // by read_path
    counts writes{};
};

}  // namespace sluice::smb::server

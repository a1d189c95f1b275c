#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/ensure.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::bench {

/// Returns a file of `bytes` zeros, a multiple of 1 MiB, in the page cache and written to the disk.
/// It is in the current directory, and removed when the program ends.
[[nodiscard]] inline io::file_handle make_cached_file(std::uint64_t bytes) {
    auto made = io::file_handle::temp_inode({}, io::caching::all).value();
    static std::array<std::byte, 1 << 20> block{};
    for (std::uint64_t at = 0; at < bytes; at += block.size())
        ENSURE(made.write(io::io_request<io::const_bytes_type>{block, at}).bytes_transferred() ==
               block.size());
    ENSURE(made.barrier().has_value());
    return made;
}

}  // namespace sluice::bench

#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/ensure.hpp"
#include "sluice/io/file/file_handle.hpp"

namespace sluice::bench {

/// A file of `bytes` zeros, whole MiB, in the page cache and written to the disk; in the current directory,
/// and removed with the program.
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

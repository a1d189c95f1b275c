#pragma once

#include <string_view>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"

namespace sluice::io {

/// The hosts that can have a volume mounted at the same time.
enum class volume_reach : std::uint8_t {
    this_host,    ///< a disk or memory: one kernel sees every access
    other_hosts,  ///< a network or cluster file system
    unknown,      ///< user space (FUSE), or an unknown type
};

/// The known properties of the file system of an open file. Optional features (reflinks, direct
/// I/O, hole punching) are not among them: they depend on how a volume was created, and only an
/// attempt shows whether they are available.
struct volume_status {
    std::string_view type_name;  // "ext2/3/4", "tmpfs", …; "unknown"
    std::uint64_t magic = 0;     // of statfs(2)
    volume_reach reach = volume_reach::unknown;
    bool in_memory = false;
    bool read_only = false;
    std::uint32_t block_bytes = 0;
    std::uint32_t name_bytes_max = 0;
    extent_type total_bytes = 0;
    extent_type free_bytes = 0;
    extent_type available_bytes = 0;  // free bytes that are available without privilege
    std::uint64_t inodes_total = 0;   // 0: without a limit
    std::uint64_t inodes_free = 0;
};

/// Returns the status of the file system of an open file; works with every mode. Errors: EBADF;
/// EIO, ESTALE from network file systems. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<volume_status> volume_of(const handle& open) noexcept;

}  // namespace sluice::io

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::io {
class file_handle;
}

namespace sluice::vfs {

/// Consecutive bytes in a file of the host. Without a place they are zeros that are not stored.
struct host_run {
    std::optional<std::uint64_t> place{};  // offset in the host's file
    std::uint64_t length = 0;
};

/// The location of a range of a file's bytes in a file of the host, in the range's order, truncated
/// at the file's end.
struct host_runs {
    // Exists as long as the node's volume; null if there are only zeros.
    io::file_handle* file = nullptr;
    std::vector<host_run> runs{};
    /// Prevents the reuse of the bytes' place, even if the file changes or is removed, until they
    /// were read or their pages were referenced. It may outlive the volume, on any thread. Null:
    /// the place is never reused.
    std::shared_ptr<const void> kept{};
};

}  // namespace sluice::vfs

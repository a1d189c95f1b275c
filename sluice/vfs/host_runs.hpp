#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sluice::io {
class file_handle;
}

namespace sluice::vfs {

/// Bytes that stand in a row in a file of the host; without a place they are zeros that stand nowhere.
struct host_run {
    std::optional<std::uint64_t> place{};  // bytes from the start of the host's file
    std::uint64_t length = 0;
};

/// Where a range of a file's bytes stands in a file of the host, in the range's order, cut at the file's end.
struct host_runs {
    io::file_handle* file = nullptr;  // lives as long as the node's volume; null if there are only zeros
    std::vector<host_run> runs{};
    /// Keeps the bytes the file's own, whatever becomes of it, until they have been read, or their pages
    /// taken by reference; may outlive the volume, on any thread. Null: nothing else can come to stand there.
    std::shared_ptr<const void> kept{};
};

}  // namespace sluice::vfs

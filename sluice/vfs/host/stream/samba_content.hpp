#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/vfs/node_data.hpp"

// Internal to the import of Samba's streams.

namespace sluice::vfs {

/// The content of one of Samba's streams: that of attributes, in memory, or a file of a depot.
/// Holes of the file are not read: it can be larger than the file system.
///
/// Thread safety: one thread. Errors of every call: those of the file. Blocks: for the device.
class samba_content {
public:
    explicit samba_content(std::vector<std::byte> content)
        : in_memory_(std::move(content)), size_bytes_(in_memory_.size()) {}
    samba_content(io::file_handle file, std::uint64_t size_bytes)
        : file_(std::move(file)), size_bytes_(size_bytes) {}

    [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
    /// Reads `into.size()` bytes, which must be within the content. Errors: EIO if it has become
    /// shorter.
    [[nodiscard]] result<void> read(std::span<std::byte> into, std::uint64_t offset);
    /// Copies it into an empty file. Errors: ENOSPC also if fewer than its data and
    /// `kept_free_bytes` are free, unless the file system shares the blocks.
    [[nodiscard]] result<void> copy_to(io::file_handle& empty, std::uint64_t kept_free_bytes);
    /// Returns whether a stream, which is open for reading, has the same content.
    [[nodiscard]] result<bool> is_equal(node_data& other, std::uint64_t other_size_bytes,
                                        io::io_multiplexer& loop);

private:
    // The first range that is not a hole, from an offset; of length 0 if there is none.
    [[nodiscard]] result<io::extent_pair> next_data(std::uint64_t offset) const;
    [[nodiscard]] result<std::uint64_t> data_bytes() const;

    std::vector<std::byte> in_memory_;
    io::file_handle file_;
    std::uint64_t size_bytes_;
};

}  // namespace sluice::vfs

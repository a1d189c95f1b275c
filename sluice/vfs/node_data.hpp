#pragma once

#include <cerrno>
#include <cstdint>
#include <span>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/vfs/host_runs.hpp"
#include "sluice/vfs/node.hpp"

namespace sluice::vfs {

/// The kinds of access to a file's data.
struct data_access {
    bool read = false;
    bool write = false;
};

/// The data of a file or a stream: a part of a node. Offsets and lengths are in bytes.
///
/// Transfers and changes fail with EBADF before open_data has granted the access they need. `by`,
/// which may be null, can cancel a transfer that still waits for a worker. The transfer then
/// fails with ECANCELED.
/// Thread safety, Blocks: as node.
class node_data {
public:
    node_data(const node_data&) = delete;
    node_data& operator=(const node_data&) = delete;

    /// Returns whether co_read, co_write and node::co_flush may run concurrently. A small stream
    /// returns false, because its writes read, change and write all of it. The caller then
    /// serialises them for one file. Once it is true, it stays true. Any thread. Allocates, Blocks:
    /// nothing.
    [[nodiscard]] virtual bool transfers_at_once() const noexcept { return false; }

    /// Makes data accessible. A repeated call can add access. Errors: EACCES, EPERM, EROFS,
    /// ETXTBSY; ENXIO if the node is no longer a file. Blocks: for the file system.
    [[nodiscard]] virtual result<void> open_data(data_access wanted) noexcept = 0;

    /// Sets whether reads of this node leave the time of access as it is, if the file system
    /// permits that. By default nothing: reads of some volumes never change it. Serialised like
    /// changes. Blocks: nothing.
    virtual void keep_access_time(bool /*keeps*/) noexcept {}

    /// Reads at `offset`. Returns fewer bytes than requested, or none, only at the end of the file.
    /// Errors: EBADF, ECANCELED. Suspends. Allocates: the coroutine.
    [[nodiscard]] virtual io::task<result<std::size_t>> co_read(
        std::span<std::byte> into, std::uint64_t offset, io::call_cancellation* by = nullptr) noexcept = 0;
    /// Writes all bytes at `offset` and extends the file if necessary. Errors: EBADF, ECANCELED,
    /// ENOSPC, EFBIG. Suspends. Allocates: the coroutine.
    [[nodiscard]] virtual io::task<result<void>> co_write(std::span<const std::byte> from,
                                                          std::uint64_t offset,
                                                          io::call_cancellation* by = nullptr) noexcept = 0;

    /// Writes as co_write, but on the calling thread, with its identity: for a caller that acts for
    /// an account. By default EOPNOTSUPP, where is_written_here() is false. Blocks: for the file
    /// system.
    [[nodiscard]] virtual result<void> write_here(std::span<const std::byte> from,
                                                  std::uint64_t offset) noexcept;
    [[nodiscard]] virtual bool is_written_here() const noexcept { return false; }

    /// Returns the host's file, for transfers that bypass the node; null if there is none (streams,
    /// images) or it is not open. Allocates, Blocks: nothing. Lifetime: the node's.
    [[nodiscard]] virtual io::file_handle* host_file() noexcept { return nullptr; }
    /// Returns whether pin_extents() may succeed: the data are stored in a file of the host.
    [[nodiscard]] virtual bool pins_extents() noexcept { return host_file() != nullptr; }
    /// Returns the location of a range in that file, for transfers that bypass the node. They may
    /// see concurrent writes. Errors: EOPNOTSUPP without such a file; E2BIG if it consists of more
    /// than `runs_max` runs; EAGAIN if it would have to wait. Allocates: the result. Complexity:
    /// linear in the runs.
    [[nodiscard]] virtual result<host_runs> pin_extents(io::extent_pair range, std::size_t runs_max) noexcept;

    /// Sets the size. Added bytes read as zeros. Errors: EBADF, ENOSPC, EFBIG.
    [[nodiscard]] virtual result<void> truncate(std::uint64_t size_bytes) noexcept = 0;
    /// Reserves space without changing the size. Best effort. Errors: EBADF; ENOSPC if the space is
    /// certainly insufficient.
    [[nodiscard]] virtual result<void> allocate(std::uint64_t size_bytes) noexcept = 0;
    /// Makes [offset, offset+length) read as zeros, and frees blocks if `frees_blocks`. Never
    /// extends the file. Errors: EBADF, ENOSPC.
    [[nodiscard]] virtual result<void> zero(std::uint64_t offset, std::uint64_t length,
                                            bool frees_blocks) noexcept = 0;
    /// Returns the ranges with data within [offset, offset+length), ascending, at most as many as
    /// `storage` holds. Errors: EBADF; EINVAL without storage. Complexity: linear in the ranges.
    [[nodiscard]] virtual result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept = 0;
    /// Copies to a node of the same volume, sharing blocks where possible. Returns the number of
    /// copied bytes: fewer at the source's end. Errors: EBADF on either side; EXDEV or EOPNOTSUPP
    /// if the kind of `destination` differs; EOPNOTSUPP with `only_shared` if blocks cannot be
    /// shared. Complexity: linear in the length.
    [[nodiscard]] virtual result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                         std::uint64_t destination_offset,
                                                         bool only_shared) noexcept = 0;

protected:
    node_data() = default;
    ~node_data() = default;
    /// The location of a range in a file that has all of the node's data, and nothing else.
    [[nodiscard]] static result<host_runs> runs_of(io::file_handle& file, io::extent_pair range,
                                                   std::size_t runs_max) noexcept;
};

/// Returns the data part of a node. Errors: EBADF if it has none, like data that is not open.
/// Allocates, Blocks: nothing. Any thread.
[[nodiscard]] inline result<node_data*> data_of(node& of) noexcept {
    if (node_data* const part = of.data(); part != nullptr) return part;
    return failure({EBADF, "use data"});
}

/// Makes the data of a node accessible, as node_data::open_data. Errors: also EISDIR for a
/// directory, ENXIO for other nodes without data. Blocks: for the file system.
[[nodiscard]] inline result<void> open_data(node& of, data_access wanted) noexcept {
    if (node_data* const part = of.data(); part != nullptr) return part->open_data(wanted);
    return failure({of.kind() == node_kind::directory ? EISDIR : ENXIO, "open data"});
}

}  // namespace sluice::vfs

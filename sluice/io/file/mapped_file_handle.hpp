#pragma once

#include <atomic>

#include "sluice/io/file/file_handle.hpp"

namespace sluice::io {

/// A file whose content is also memory: a read copies nothing, a write is a memcpy.
///
/// The address space is reserved when the file is opened and never moves. The file may grow into
/// it, by truncate, by writes past the end, or by other processes, while pointers into it stay
/// valid. Every form of read returns the map's own pages. Blocking writes and barriers use the map,
/// their other forms the descriptor, with the same result (mapped_sender.hpp). Operations through a
/// file_handle& use the descriptor and see the same bytes, because both are the kernel's page
/// cache.
///
/// SIGBUS. The kernel reports errors of mapped memory only by this signal. Touching a page raises
/// it (1) past the end of the file, if another process has truncated it; (2) if the disk fails; (3)
/// when writing into a hole of a full disk. So map only files that other processes do not truncate
/// (because of a lock they honour, a lease, or a file without a name). Where that is not certain,
/// read with copy_out, which cannot fault. Fill holes by writing past the end, which uses the
/// descriptor and reports ENOSPC. This class installs no signal handler: that is for the program to
/// decide.
///
/// Thread safety: as handle; reads and writes from several threads, but only one may shorten the
/// file, while no other thread touches the removed part.
class mapped_file_handle : public file_handle {
public:
    mapped_file_handle() noexcept = default;
    mapped_file_handle(mapped_file_handle&& other) noexcept;
    mapped_file_handle& operator=(mapped_file_handle&& other) noexcept;
    ~mapped_file_handle();

    /// Opens the file `path` and maps all of it. `reserve_bytes` is the length up to which it can
    /// grow under this handle; at least its present length (the default) and one page. Reserving
    /// costs address space, not memory. Errors: as file_handle::open; EINVAL if mode is neither
    /// read nor write, or caching bypasses the cache that the map shares (none, only_metadata);
    /// ENOMEM if the address space does not suffice; ENODEV, EOVERFLOW if the file system cannot
    /// map, or not up to that length; EAGAIN with locked memory (mlockall). Allocates: nothing.
    /// Blocks: for the file system.
    [[nodiscard]] static result<mapped_file_handle> open(
        const path_handle& base, path_view path, extent_type reserve_bytes = 0, mode wanted = mode::read,
        creation create = creation::open_existing, caching cached = caching::all,
        open_flag flags = open_flag::none, unsigned permission_bits = 0666) noexcept;

    /// Takes ownership of an open file and maps it. Errors: as open, and `file` is closed.
    [[nodiscard]] static result<mapped_file_handle> map(file_handle file,
                                                        extent_type reserve_bytes = 0) noexcept;

    /// Returns the address of the file's first byte; it does not change while the handle is open.
    /// Not writable in mode read.
    [[nodiscard]] std::byte* address() const noexcept { return address_; }
    /// Returns the length up to which the file can grow.
    [[nodiscard]] extent_type reserved_bytes() const noexcept { return reserved_; }
    /// Returns the length of the file when it was last checked: bytes from address() on.
    [[nodiscard]] extent_type mapped_length() const noexcept {
        return length_.load(std::memory_order_acquire);
    }
    /// Updates and returns the length of the file, which other processes may have changed. Errors:
    /// as maximum_extent.
    [[nodiscard]] result<extent_type> update_length() noexcept;

    /// Returns the file's own pages: the returned buffers, which are those of the request, point
    /// into the map (in mode read they must not be written), and later writes of others are visible
    /// in them. The call copies no bytes and does not wait, so the deadline has no effect: the
    /// first access to a page may wait for the disk. A request beyond the reservation ends there.
    /// Errors: EBADF if not open; EIO, ESTALE when asking for the length. Allocates: nothing.
    io_result<buffers_type> read(io_request<buffers_type> request, deadline within = {}) noexcept;
    io_result<bytes_type> read(io_request<bytes_type> request, deadline within = {}) noexcept;

    /// Copies into the map. Bytes past the end of the file, or past an end that another write may
    /// still be moving, are written through the descriptor, which lengthens the file where needed.
    /// Errors: EBADF if not open for writing; EFBIG past the reservation; past the end those of
    /// file_handle::write. A partial write is a success. Allocates: nothing. Blocks: as read.
    io_result<const_buffers_type> write(io_request<const_buffers_type> request,
                                        deadline within = {}) noexcept;
    io_result<const_bytes_type> write(io_request<const_bytes_type> request, deadline within = {}) noexcept;

    /// As write.
    io_result<const_buffers_type> write_some(io_request<const_buffers_type> request,
                                             deadline within = {}) noexcept {
        return write(request, within);
    }
    io_result<const_bytes_type> write_some(io_request<const_bytes_type> request,
                                           deadline within = {}) noexcept {
        return write(request, within);
    }

    /// As file_handle::read: copies through the kernel, and so reports the causes of a SIGBUS: a
    /// file that was truncated concurrently (fewer bytes) or a disk that fails (EIO). Errors,
    /// Blocks: as io_handle::read.
    io_result<bytes_type> copy_out(io_request<bytes_type> request, deadline within = {}) noexcept {
        return file_handle::read(request, within);
    }

    /// As io_handle::barrier. wait_data_only covers only `range`, if one is given: the bytes of the
    /// file as long as its buffers together. Errors: as io_handle::barrier.
    io_result<const_buffers_type> barrier(barrier_kind kind = barrier_kind::wait_all,
                                          io_request<const_buffers_type> range = {},
                                          deadline within = {}) noexcept;

    /// As file_handle::truncate. Memory past a new end must not be accessed any more. Errors: also
    /// EFBIG if `length` is more than was reserved.
    [[nodiscard]] result<extent_type> truncate(extent_type length) noexcept;

    /// Unmaps and closes; unmaps and releases the descriptor. Errors: as file_handle::close.
    [[nodiscard]] result<void> close() noexcept;
    [[nodiscard]] native_handle release() noexcept;

private:
    template <class, amount>
    friend class mapped_write_sender;

    [[nodiscard]] result<void> map_reserved(extent_type reserve_bytes) noexcept;
    void unmap() noexcept;
    void record_written(extent_type end) noexcept;
    [[nodiscard]] result<extent_type> bytes_from(extent_type offset, std::size_t wanted) noexcept;
    [[nodiscard]] result<std::size_t> write_piece(const_bytes_type piece, extent_type offset,
                                                  deadline within) noexcept;

    std::byte* address_ = nullptr;
    extent_type reserved_ = 0;
    // Smaller than the file's length only until the next check; greater only if the file was
    // truncated elsewhere.
    std::atomic<extent_type> length_ = 0;
    // Bytes that the file had when it was mapped, or when a write through this handle had ended. A
    // write past the end sets the length first, and then clears the bytes between the old end and
    // its first byte (ext4): only below this value are bytes of a memcpy never cleared.
    std::atomic<extent_type> mapped_bytes_ = 0;
};

}  // namespace sluice::io

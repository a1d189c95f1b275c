#include "sluice/io/file/mapped_file_handle.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/blocking.hpp"
#include "sluice/io/file/page_cache.hpp"

namespace sluice::io {

mapped_file_handle::mapped_file_handle(mapped_file_handle&& other) noexcept
    : file_handle(std::move(other)),
      address_(std::exchange(other.address_, nullptr)),
      reserved_(std::exchange(other.reserved_, 0)),
      length_(other.length_.exchange(0, std::memory_order_relaxed)),
      mapped_bytes_(other.mapped_bytes_.exchange(0, std::memory_order_relaxed)) {}

mapped_file_handle& mapped_file_handle::operator=(mapped_file_handle&& other) noexcept {
    if (this != &other) {
        unmap();
        file_handle::operator=(std::move(other));
        address_ = std::exchange(other.address_, nullptr);
        reserved_ = std::exchange(other.reserved_, 0);
        length_.store(other.length_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
        mapped_bytes_.store(other.mapped_bytes_.exchange(0, std::memory_order_relaxed),
                            std::memory_order_relaxed);
    }
    return *this;
}

mapped_file_handle::~mapped_file_handle() {
    unmap();
}

result<mapped_file_handle> mapped_file_handle::open(const path_handle& base, path_view path,
                                                    extent_type reserve_bytes, mode wanted, creation create,
                                                    caching cached, open_flag flags,
                                                    unsigned permission_bits) noexcept {
    const bool bypasses = cached == caching::none or cached == caching::only_metadata;
    if ((wanted != mode::read and wanted != mode::write) or bypasses)
        return failure(error::with_path(EINVAL, "open to map", path.text()));
    auto file = file_handle::open(base, path, wanted, create, cached, flags, permission_bits);
    if (not file) return failure(file.error());
    return map(std::move(*file), reserve_bytes);
}

result<mapped_file_handle> mapped_file_handle::map(file_handle file, extent_type reserve_bytes) noexcept {
    if (not file.native().readable or file.native().direct)
        return failure({EINVAL, "mmap", file.descriptor()});
    mapped_file_handle mapped;
    static_cast<file_handle&>(mapped) = std::move(file);
    if (const auto done = mapped.map_reserved(reserve_bytes); not done) return failure(done.error());
    return mapped;
}

result<void> mapped_file_handle::map_reserved(extent_type reserve_bytes) noexcept {
    ENSURE(address_ == nullptr, "a handle has one map");
    const auto length = maximum_extent();
    if (not length) return failure(length.error());
    const extent_type page = page_bytes();
    const extent_type wanted = std::max({reserve_bytes, *length, page});
    if (wanted > std::numeric_limits<std::size_t>::max() - page)
        return failure({ENOMEM, "mmap", descriptor()});
    const extent_type whole_pages = (wanted + page - 1) / page * page;
    // A map may reach past the end of its file: the pages there appear when the file grows over
    // them.
    void* const at = ::mmap(nullptr, whole_pages, PROT_READ | (native().writable ? PROT_WRITE : 0),
                            MAP_SHARED | MAP_NORESERVE, descriptor(), 0);
    if (at == MAP_FAILED) return failure(error::last("mmap", descriptor()));
    address_ = static_cast<std::byte*>(at);
    reserved_ = whole_pages;
    length_.store(std::min(*length, reserved_), std::memory_order_release);
    mapped_bytes_.store(std::min(*length, reserved_), std::memory_order_relaxed);
    return {};
}

void mapped_file_handle::unmap() noexcept {
    ENSURE((address_ == nullptr) == (reserved_ == 0), "a map has pages, and no map has none");
    if (address_ == nullptr) return;
    (void)::munmap(std::exchange(address_, nullptr), std::exchange(reserved_, 0));
    length_.store(0, std::memory_order_relaxed);
    mapped_bytes_.store(0, std::memory_order_relaxed);
}

result<extent_type> mapped_file_handle::update_length() noexcept {
    const auto length = maximum_extent();
    if (not length) return length;
    const extent_type mapped = std::min(*length, reserved_);
    length_.store(mapped, std::memory_order_release);
    return mapped;
}

namespace {

// release: pairs with the acquire in mapped_length(), for a reader that finds the bytes through the
// length.
void raise(std::atomic<extent_type>& length, extent_type at_least) noexcept {
    extent_type known = length.load(std::memory_order_relaxed);
    while (known < at_least and not length.compare_exchange_weak(known, at_least, std::memory_order_release,
                                                                 std::memory_order_relaxed)) {}
}

}  // namespace

// A write through the descriptor has ended there. The kernel executes one write at a time, so no
// earlier write still clears bytes.
void mapped_file_handle::record_written(extent_type end) noexcept {
    ENSURE(end <= reserved_, "written past the end of the map");
    raise(length_, end);
    raise(mapped_bytes_, end);
}

// Returns how many of the bytes wanted from `offset` on the file has. Asks the kernel only if the
// known length has fewer: then the file may have grown.
result<extent_type> mapped_file_handle::bytes_from(extent_type offset, std::size_t wanted) noexcept {
    extent_type length = mapped_length();
    if (offset >= length or wanted > length - offset) {
        const auto now = maximum_extent();
        if (not now) return now;
        raise(length_, std::min(*now, reserved_));
        length = std::min(std::max(length, *now), reserved_);
    }
    ENSURE(length <= reserved_, "the map ends before the file as it is known");
    return offset >= length ? 0 : std::min<extent_type>(wanted, length - offset);
}

io_result<buffers_type> mapped_file_handle::read(io_request<buffers_type> request, deadline) noexcept {
    if (not is_valid()) return failure({EBADF, "read", descriptor()});
    if (request.offset == no_offset) return failure({EINVAL, without_offset(direction::in), descriptor()});
    extent_type at = request.offset;
    std::size_t filled = 0;
    for (buffer& piece : request.buffers) {
        if (piece.size() == 0) {
            ++filled;
            continue;
        }
        const auto available = bytes_from(at, piece.size());
        if (not available) return failure(available.error());
        if (*available == 0) break;
        const bool whole = *available == piece.size();
        piece = buffer(address_ + at, static_cast<std::size_t>(*available));
        at += *available;
        ++filled;
        if (not whole) break;
    }
    return request.buffers.first(filled);
}

io_result<bytes_type> mapped_file_handle::read(io_request<bytes_type> request, deadline) noexcept {
    if (not is_valid()) return failure({EBADF, "read", descriptor()});
    if (request.offset == no_offset) return failure({EINVAL, without_offset(direction::in), descriptor()});
    const auto available = bytes_from(request.offset, request.buffers.size());
    if (not available) return failure(available.error());
    if (*available == 0) return request.buffers.first(0);
    return bytes_type(address_ + request.offset, static_cast<std::size_t>(*available));
}

// Writes one segment: the part that is certainly in the file by memcpy, the rest by a system call.
// Writers that lengthen the file at the same time do not overwrite each other's bytes: see
// mapped_bytes_.
result<std::size_t> mapped_file_handle::write_piece(const_bytes_type piece, extent_type offset,
                                                    deadline within) noexcept {
    if (piece.empty()) return std::size_t{0};
    if (offset >= reserved_) return failure({EFBIG, "write", descriptor()});
    piece = piece.first(std::min<extent_type>(piece.size(), reserved_ - offset));
    const extent_type mapped = mapped_bytes_.load(std::memory_order_acquire);
    ENSURE(mapped <= reserved_, "the mapped length exceeds the map");
    const auto copied =
        static_cast<std::size_t>(offset >= mapped ? 0 : std::min<extent_type>(piece.size(), mapped - offset));
    if (copied > 0) std::memcpy(address_ + offset, piece.data(), copied);
    if (copied == piece.size()) return copied;

    const auto rest =
        file_handle::write(io_request<const_bytes_type>{piece.subspan(copied), offset + copied}, within);
    if (not rest) return copied > 0 ? result<std::size_t>(copied) : failure(rest.error());
    const std::size_t total = copied + rest->size();
    record_written(offset + total);
    return total;
}

io_result<const_buffers_type> mapped_file_handle::write(io_request<const_buffers_type> request,
                                                        deadline within) noexcept {
    if (not native().writable) return failure({EBADF, "write", descriptor()});
    if (request.offset == no_offset) return failure({EINVAL, without_offset(direction::out), descriptor()});
    extent_type at = request.offset;
    std::size_t done = 0;
    for (const_buffer& piece : request.buffers) {
        const auto written = write_piece(piece.bytes(), at, within);
        if (not written) {
            if (at == request.offset) return failure(written.error());
            break;
        }
        const bool whole = *written == piece.size();
        at += *written;
        if (*written > 0 or whole) ++done;
        if (not whole) {
            piece = const_buffer(piece.data(), *written);
            break;
        }
    }
    return request.buffers.first(done);
}

io_result<const_bytes_type> mapped_file_handle::write(io_request<const_bytes_type> request,
                                                      deadline within) noexcept {
    if (not native().writable) return failure({EBADF, "write", descriptor()});
    if (request.offset == no_offset) return failure({EINVAL, without_offset(direction::out), descriptor()});
    const auto written = write_piece(request.buffers, request.offset, within);
    if (not written) return failure(written.error());
    return request.buffers.first(*written);
}

io_result<const_buffers_type> mapped_file_handle::barrier(barrier_kind kind,
                                                          io_request<const_buffers_type> range,
                                                          deadline within) noexcept {
    const barrier_range bytes = barrier_extent(range);
    // The other kinds are calls on the descriptor anyway: msync has no form that starts write-back
    // (MS_ASYNC does nothing on Linux) and none that takes all metadata.
    if (kind != barrier_kind::wait_data_only or bytes.length == 0)
        return file_handle::barrier(kind, range, within);
    if (not is_valid()) return failure({EBADF, "msync", descriptor()});
    if (is_over(within)) return failure({ETIMEDOUT, "barrier", descriptor()});
    if (bytes.offset >= reserved_) return range.buffers;
    const extent_type first = bytes.offset / page_bytes() * page_bytes();
    const extent_type end = bytes.offset + std::min(bytes.length, reserved_ - bytes.offset);
    ENSURE(first < end and end <= reserved_, "a barrier of pages outside of the map");
    if (::msync(address_ + first, end - first, MS_SYNC) != 0)
        return failure(error::last("msync", descriptor()));
    return range.buffers;
}

result<extent_type> mapped_file_handle::truncate(extent_type length) noexcept {
    if (length > reserved_) return failure({EFBIG, "truncate", descriptor()});
    const auto done = file_handle::truncate(length);
    if (done) {
        length_.store(length, std::memory_order_release);
        mapped_bytes_.store(length, std::memory_order_release);
    }
    return done;
}

result<void> mapped_file_handle::close() noexcept {
    unmap();
    return file_handle::close();
}

native_handle mapped_file_handle::release() noexcept {
    unmap();
    return file_handle::release();
}

}  // namespace sluice::io

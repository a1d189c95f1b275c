#include "sluice/vfs/host/host_transfer.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>

#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/vfs/loop_bound_file.hpp"

namespace sluice::vfs {
namespace {

struct cached_part {
    std::size_t bytes = 0;
    bool is_all = false;  // as many as asked for, or the file ends there
};

// Reads the part that needs no wait for a device. Reports no errors: the read of the rest meets
// them again.
cached_part read_cached(const io::file_handle& file, std::span<std::byte> into,
                        std::uint64_t offset) noexcept {
    const int flags = file.native().in_memory ? 0 : RWF_NOWAIT;
    cached_part done;
    while (done.bytes != into.size()) {
        const iovec rest{.iov_base = into.data() + done.bytes, .iov_len = into.size() - done.bytes};
        const ssize_t moved = io::checked_byte_count(
            ::preadv2(file.descriptor(), &rest, 1, static_cast<off_t>(offset + done.bytes), flags),
            rest.iov_len);
        if (moved < 0 and errno == EINTR) continue;
        if (moved < 0) return done;
        if (moved == 0) break;
        done.bytes += static_cast<std::size_t>(moved);
    }
    done.is_all = true;
    return done;
}

// Returns the part of a length that fits in a file of 63 bits.
std::uint64_t cut_length(std::uint64_t offset, std::uint64_t length) noexcept {
    constexpr std::uint64_t end_max = INT64_MAX;
    return offset >= end_max ? 0 : std::min(length, end_max - offset);
}

// The file system cannot do it in general, or not for this range.
bool is_unsuitable(int code) noexcept {
    return code == EOPNOTSUPP or code == ENOTTY or code == ENOSYS or code == EXDEV;
}

result<std::uint64_t> share_blocks(const io::file_handle& from, const io::file_handle& to,
                                   io::extent_pair source, std::uint64_t destination_offset) noexcept {
    const auto size = from.maximum_extent();
    if (not size) return failure(size.error());
    const std::uint64_t length = source.offset >= *size ? 0 : std::min(source.length, *size - source.offset);
    if (length == 0) return 0U;
    file_clone_range range{.src_fd = from.descriptor(),
                           .src_offset = source.offset,
                           .src_length = length,
                           .dest_offset = destination_offset};
    if (::ioctl(to.descriptor(), FICLONERANGE, &range) == 0) return length;
    return failure(error(is_unsuitable(errno) ? EOPNOTSUPP : errno, "share blocks", to.descriptor()));
}

io::task<result<std::size_t>> co_read_by_ring(host_tree& tree, io::file_handle& file,
                                              std::span<std::byte> into, std::uint64_t offset) noexcept {
    loop_bound_file bound(file, tree.multiplexer_here());
    if (not bound.attached()) co_return failure(bound.attached().error());
    const io::io_request<io::bytes_type> request{.buffers = into, .offset = offset};
    const auto read = co_await io::co_read(bound.file(), request);
    if (not read) co_return failure(read.error());
    co_return read->size();
}

}  // namespace

result<std::size_t> read_waiting(io::file_handle& file, std::span<std::byte> into,
                                 std::uint64_t offset) noexcept {
    const auto read = file.read({.buffers = into, .offset = offset});
    if (not read) return failure(read.error());
    return read->size();
}

result<void> write_waiting(io::file_handle* file, std::span<const std::byte> from,
                           std::uint64_t offset) noexcept {
    if (file == nullptr) return failure({EBADF, "write"});
    while (not from.empty()) {
        const auto written = file->write({.buffers = from, .offset = offset});
        if (not written) return failure(written.error());
        if (written->empty()) return failure(error(EIO, "write", file->descriptor()));
        from = from.subspan(written->size());
        offset += written->size();
    }
    return {};
}

io::task<result<std::size_t>> co_read_file(transferred_file from, std::span<std::byte> into,
                                           std::uint64_t offset, io::call_cancellation* by) noexcept {
    if (from.file == nullptr) co_return failure({EBADF, "read"});
    cached_part cached;
    if (from.domain.is_inline()) {
        const fs_domain::inline_call now(from.domain);
        cached = read_cached(*from.file, into, offset);
    }
    if (cached.is_all) co_return cached.bytes;
    const auto rest = into.subspan(cached.bytes);
    offset += cached.bytes;
    result<std::size_t> read = 0U;
    if (from.domain.is_inline() and from.tree.reads_by_ring) {
        io::task<result<std::size_t>> reading = co_read_by_ring(from.tree, *from.file, rest, offset);
        read = co_await std::move(reading);
    } else {
        read = co_await from.domain.offload(from.tree.multiplexer_here(), by,
                                            [&] { return read_waiting(*from.file, rest, offset); });
    }
    if (not read) co_return read;
    co_return cached.bytes + *read;
}

result<void> reserve_file(io::file_handle& file, std::uint64_t size_bytes) noexcept {
    const std::uint64_t length = cut_length(0, size_bytes);
    if (length == 0) return {};
    int done = 0;
    do {
        done = ::fallocate(file.descriptor(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(length));
    } while (done != 0 and errno == EINTR);
    if (done == 0 or is_unsuitable(errno)) return {};
    return failure(error::last("fallocate", file.descriptor()));
}

result<void> zero_file(io::file_handle& file, std::uint64_t offset, std::uint64_t length,
                       bool frees_blocks) noexcept {
    const std::uint64_t bytes = cut_length(offset, length);
    if (bytes == 0) return {};
    if (frees_blocks) return file.zero({.offset = offset, .length = bytes});
    if (::fallocate(file.descriptor(), FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(bytes)) == 0)
        return {};
    if (not is_unsuitable(errno)) return failure(error::last("zero", file.descriptor()));
    return file.zero({.offset = offset, .length = bytes}, io::file_handle::zero_method::written);
}

result<std::span<io::extent_pair>> ranges_of_file(const io::file_handle& file, std::uint64_t offset,
                                                  std::uint64_t length,
                                                  std::span<io::extent_pair> storage) noexcept {
    const std::uint64_t bytes = cut_length(offset, length);
    if (bytes == 0) return storage.first(0);
    return file.extents({.offset = offset, .length = bytes}, storage);
}

result<std::uint64_t> clone_file(const io::file_handle& from, io::file_handle& to, io::extent_pair source,
                                 std::uint64_t destination_offset, bool only_shared) noexcept {
    if (only_shared) return share_blocks(from, to, source, destination_offset);
    const auto done = from.clone_extents_to(to, {.source = source, .destination_offset = destination_offset});
    if (not done) return failure(done.error());
    return done->cloned_bytes;
}

}  // namespace sluice::vfs

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "sluice/io/file/reopen.hpp"
#include "sluice/vfs/host/host_node.hpp"

// The data half of host_node, but for transfers.

namespace sluice::vfs {
namespace {

error not_open(const char* operation) noexcept {
    return {EBADF, operation};
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

result<std::uint64_t> share_blocks(const io::file_handle& from, io::file_handle& to, io::extent_pair source,
                                   std::uint64_t destination_offset) noexcept {
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

}  // namespace

void host_node::end_nonblocking() noexcept {
    // Pairs with the store below: a thread that reads null transfers after the flag is off.
    const io::file_handle* const file = nonblocking_.load(std::memory_order_acquire);
    if (file == nullptr) return;
    set_flags(*file);
    nonblocking_.store(nullptr, std::memory_order_release);
}

// Only the owner of a file, and root, may set O_NOATIME. The flags replace O_NONBLOCK in any case:
// data that are opened without blocking must not be transferred so.
void host_node::set_flags(const io::file_handle& file) const noexcept {
    // relaxed: changes of a node are serialised, and a transfer may begin before or after one.
    const bool keeps = keeps_access_time_.load(std::memory_order_relaxed);
    if (keeps and ::fcntl(file.descriptor(), F_SETFL, O_NOATIME) == 0) return;
    (void)::fcntl(file.descriptor(), F_SETFL, 0);
}

void host_node::keep_access_time(bool keeps) noexcept {
    if (keeps_access_time_.exchange(keeps, std::memory_order_relaxed) == keeps) return;
    const auto read = granted_.can_read() ? readable() : nullptr;
    if (read != nullptr) set_flags(*read);
}

io::file_handle* host_node::readable() noexcept {
    if (not granted_.can_read()) return nullptr;
    end_nonblocking();
    return reading_.is_valid() ? &reading_ : &writing_;
}

io::file_handle* host_node::writable() noexcept {
    if (not granted_.can_write()) return nullptr;
    end_nonblocking();
    return &writing_;
}

io::file_handle* host_node::host_file() noexcept {
    return granted_.can_write() ? writable() : readable();
}

result<io::file_handle> host_node::reopen(io::mode wanted) const noexcept {
    // Beneath the root other file systems may be mounted.
    if (key().volume == tree_.root_device)
        return io::reopen(held(), wanted, {.in_memory = tree_.root_is_in_memory});
    const io::descriptor_path itself(held().descriptor());
    return io::file_handle::open({}, itself.c_str(), wanted);
}

result<void> host_node::open_data(data_access wanted) noexcept {
    if (kind() != node_kind::file) return failure({ENXIO, "open data"});
    if (wanted.write and tree_.options.read_only) return failure({EROFS, "open data"});
    const bool can_write = granted_.can_write();
    const bool lacks_write = wanted.write and not can_write;
    const bool lacks_read = wanted.read and not granted_.can_read() and not wanted.write and not can_write;
    // A file just created is open already, but not yet to be used.
    io::file_handle& target = lacks_write or writing_.is_valid() ? writing_ : reading_;
    if ((lacks_write or lacks_read) and not target.is_valid()) {
        auto opened = reopen(lacks_write ? io::mode::write : io::mode::read);
        if (not opened) return failure(opened.error());
        target = std::move(*opened);
    }
    // release: pairs with the acquire in asked().
    if (target.is_valid()) asked_by_.store(&target, std::memory_order_release);
    granted_.add(wanted);
    return {};
}

result<void> host_node::truncate(std::uint64_t size_bytes) noexcept {
    io::file_handle* const file = writable();
    if (file == nullptr) return failure(not_open("truncate"));
    const auto done = file->truncate(size_bytes);
    if (not done) return failure(done.error());
    return {};
}

result<void> host_node::allocate(std::uint64_t size_bytes) noexcept {
    io::file_handle* const file = writable();
    if (file == nullptr) return failure(not_open("allocate"));
    const std::uint64_t length = cut_length(0, size_bytes);
    if (length == 0) return {};
    int done = 0;
    do {
        done = ::fallocate(file->descriptor(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(length));
    } while (done != 0 and errno == EINTR);
    if (done == 0 or is_unsuitable(errno)) return {};
    return failure(error::last("fallocate", file->descriptor()));
}

result<void> host_node::zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks) noexcept {
    io::file_handle* const file = writable();
    if (file == nullptr) return failure(not_open("zero"));
    const std::uint64_t bytes = cut_length(offset, length);
    if (bytes == 0) return {};
    if (frees_blocks) return file->zero({.offset = offset, .length = bytes});
    if (::fallocate(file->descriptor(), FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0)
        return {};
    if (not is_unsuitable(errno)) return failure(error::last("zero", file->descriptor()));
    return file->zero({.offset = offset, .length = bytes}, io::file_handle::zero_method::written);
}

result<std::span<io::extent_pair>> host_node::allocated_ranges(std::uint64_t offset, std::uint64_t length,
                                                               std::span<io::extent_pair> storage) noexcept {
    io::file_handle* const file = host_file();
    if (file == nullptr) return failure(not_open("list ranges"));
    const std::uint64_t bytes = cut_length(offset, length);
    if (bytes == 0) return storage.first(0);
    return file->extents({.offset = offset, .length = bytes}, storage);
}

result<std::uint64_t> host_node::clone_to(node& destination, io::extent_pair source,
                                          std::uint64_t destination_offset, bool only_shared) noexcept {
    auto* const other = dynamic_cast<host_node*>(&destination);
    if (other == nullptr) return failure({only_shared ? EOPNOTSUPP : EXDEV, "clone"});
    io::file_handle* const from = readable();
    io::file_handle* const to = other->writable();
    if (from == nullptr or to == nullptr) return failure(not_open("clone"));
    if (only_shared) return share_blocks(*from, *to, source, destination_offset);
    const auto done =
        from->clone_extents_to(*to, {.source = source, .destination_offset = destination_offset});
    if (not done) return failure(done.error());
    return done->cloned_bytes;
}

}  // namespace sluice::vfs

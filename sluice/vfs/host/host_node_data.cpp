#include <fcntl.h>

#include "sluice/io/file/reopen.hpp"
#include "sluice/vfs/host/host_node.hpp"
#include "sluice/vfs/host/host_transfer.hpp"

// The data half of host_node, but for transfers.

namespace sluice::vfs {
namespace {

error not_open(const char* operation) noexcept {
    return {EBADF, operation};
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
    return file != nullptr ? reserve_file(*file, size_bytes) : failure(not_open("allocate"));
}

result<void> host_node::zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks) noexcept {
    io::file_handle* const file = writable();
    return file != nullptr ? zero_file(*file, offset, length, frees_blocks) : failure(not_open("zero"));
}

result<std::span<io::extent_pair>> host_node::allocated_ranges(std::uint64_t offset, std::uint64_t length,
                                                               std::span<io::extent_pair> storage) noexcept {
    const io::file_handle* const file = host_file();
    if (file == nullptr) return failure(not_open("list ranges"));
    return ranges_of_file(*file, offset, length, storage);
}

result<std::uint64_t> host_node::clone_to(node& destination, io::extent_pair source,
                                          std::uint64_t destination_offset, bool only_shared) noexcept {
    auto* const other = dynamic_cast<host_node*>(&destination);
    if (other == nullptr) return failure({only_shared ? EOPNOTSUPP : EXDEV, "clone"});
    const io::file_handle* const from = readable();
    io::file_handle* const to = other->writable();
    if (from == nullptr or to == nullptr) return failure(not_open("clone"));
    return clone_file(*from, *to, source, destination_offset, only_shared);
}

}  // namespace sluice::vfs

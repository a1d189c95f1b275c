#include <sys/uio.h>

#include "sluice/io/call/checked_moved.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/host/host_node.hpp"
#include "sluice/vfs/loop_bound_file.hpp"

// The transfers of host_node, and where they run.

namespace sluice::vfs {
namespace {

error not_open(const char* operation) noexcept {
    return {EBADF, operation};
}

struct cached_part {
    std::size_t bytes = 0;
    bool is_all = false;  // as many as asked for, or the file ends there
};

// Reads the part that needs no wait for a device. Reports no errors: the read of the
// rest meets them again.
cached_part read_cached(const io::file_handle& file, std::span<std::byte> into,
                        std::uint64_t offset) noexcept {
    const int flags = file.native().in_memory ? 0 : RWF_NOWAIT;
    cached_part done;
    while (done.bytes != into.size()) {
        const iovec rest{.iov_base = into.data() + done.bytes, .iov_len = into.size() - done.bytes};
        const ssize_t moved = io::checked_moved(
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

result<std::size_t> read_waiting(io::file_handle& file, std::span<std::byte> into,
                                 std::uint64_t offset) noexcept {
    const auto read = file.read({.buffers = into, .offset = offset});
    if (not read) return failure(read.error());
    return read->size();
}

result<void> write_waiting(io::file_handle& file, std::span<const std::byte> from,
                           std::uint64_t offset) noexcept {
    while (not from.empty()) {
        const auto written = file.write({.buffers = from, .offset = offset});
        if (not written) return failure(written.error());
        if (written->empty()) return failure(error(EIO, "write", file.descriptor()));
        from = from.subspan(written->size());
        offset += written->size();
    }
    return {};
}

}  // namespace

io::task<result<std::size_t>> host_node::co_read_by_ring(io::file_handle& file, std::span<std::byte> into,
                                                         std::uint64_t offset) noexcept {
    loop_bound_file bound(file, tree_.multiplexer_here());
    if (not bound.attached()) co_return failure(bound.attached().error());
    const io::io_request<io::bytes_type> request{.buffers = into, .offset = offset};
    const auto read = co_await io::co_read(bound.file(), request);
    if (not read) co_return failure(read.error());
    co_return read->size();
}

io::task<result<std::size_t>> host_node::co_read(std::span<std::byte> into, std::uint64_t offset,
                                                 io::call_withdrawal* by) noexcept {
    io::file_handle* const file = readable();
    if (file == nullptr) co_return failure(not_open("read"));
    fs_domain& on = domain();
    cached_part cached;
    if (on.is_inline()) {
        const fs_domain::inline_call now(on);
        cached = read_cached(*file, into, offset);
    }
    if (cached.is_all) co_return cached.bytes;
    const auto rest = into.subspan(cached.bytes);
    offset += cached.bytes;
    result<std::size_t> read = 0U;
    if (on.is_inline() and tree_.reads_by_ring) {
        io::task<result<std::size_t>> reading = co_read_by_ring(*file, rest, offset);
        read = co_await std::move(reading);
    } else {
        read = co_await on.offload(tree_.multiplexer_here(), by,
                                   [&] { return read_waiting(*file, rest, offset); });
    }
    if (not read) co_return read;
    co_return cached.bytes + *read;
}

io::task<result<void>> host_node::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                           io::call_withdrawal* by) noexcept {
    io::file_handle* const file = writable();
    if (file == nullptr) co_return failure(not_open("write"));
    fs_domain& on = domain();
    const auto began = buffered_write_hint::clock::now();
    if (on.is_inline() and tree_.writes.is_prompt(began)) {
        const fs_domain::inline_call now(on);
        const result<void> written = write_waiting(*file, from, offset);
        tree_.writes.record(began, buffered_write_hint::clock::now(), from.size());
        co_return written;
    }
    co_return co_await on.offload(tree_.multiplexer_here(), by,
                                  [&] { return write_waiting(*file, from, offset); });
}

io::task<result<void>> host_node::co_flush(io::call_withdrawal* by) noexcept {
    co_return co_await domain().offload(tree_.multiplexer_here(), by, [this] { return flush(); });
}

result<void> host_node::flush() noexcept {
    const auto barrier_of = [](auto opened) -> result<void> {
        if (not opened) return failure(opened.error());
        const auto done = opened->barrier();
        if (not done) return failure(done.error());
        return {};
    };
    if (io::file_handle* const file = host_file(); file != nullptr) {
        const auto done = file->barrier();
        if (not done) return failure(done.error());
        return {};
    }
    const io::descriptor_path itself(held().descriptor());
    if (kind() == node_kind::directory) return barrier_of(io::directory_handle::open({}, itself.c_str()));
    if (kind() != node_kind::file) return {};  // nothing but a name
    return barrier_of(io::file_handle::open({}, itself.c_str(), io::mode::read));
}

}  // namespace sluice::vfs

#include "sluice/fat/device/file_device.hpp"

#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/transfer_call.hpp"
#include "sluice/io/file/page_cache.hpp"
#include "sluice/io/path/file_status.hpp"

namespace sluice::fat {

result<file_device> file_device::make(io::file_handle file, std::uint64_t size_bytes,
                                      bool discards) noexcept {
    if (file.native().append_only) return failure({EINVAL, "image opened for appending", file.descriptor()});
    ENSURE(size_bytes <= INT64_MAX, "sizes of devices have 63 bits");
    const bool can_forget = discards and io::cached_pages(file, {.offset = 0, .length = 1}).has_value();
    return file_device(std::move(file), size_bytes, {.discards = discards, .can_forget = can_forget});
}

result<file_device> file_device::growing(io::file_handle file, std::uint64_t size_bytes) noexcept {
    return make(std::move(file), size_bytes, false);
}

result<file_device> file_device::over(io::file_handle file) noexcept {
    const result<io::extent_type> size = file.maximum_extent();
    if (not size) return failure(size.error());
    const auto status = io::status_of(file, io::stat_fields::type);
    if (not status) return failure(status.error());
    return make(std::move(file), *size, status->type == io::file_type::regular);
}

result<void> file_device::empty() noexcept {
    const auto cut = file_.truncate(0);
    return cut ? barrier(io::barrier_kind::wait_all) : failure(cut.error());
}

result<void> file_device::lengthen(std::uint64_t file_bytes) noexcept {
    ENSURE(file_bytes <= size_bytes(), "a device does not grow");
    const auto now = file_.maximum_extent();
    if (not now) return failure(now.error());
    if (*now >= file_bytes) return {};
    const auto done = file_.truncate(file_bytes);
    return done ? result<void>() : failure(done.error());
}

result<void> file_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    const std::uint64_t wanted = bytes_in(pieces);
    if (const auto inside = check_inside({offset, wanted}, "read past the end of the image"); not inside)
        return inside;
    const auto done = file_.read({.buffers = pieces, .offset = offset});
    if (not done) return failure(done.error());
    ENSURE(done.bytes_transferred() <= wanted, "a read transfers at most its length");
    if (done.bytes_transferred() != wanted)
        return failure({EIO, "read of an image that was cut", file_.descriptor()});
    return {};
}

result<bool> file_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    if (const auto inside = check_inside({offset, into.size()}, "read past the end of the image"); not inside)
        return failure(inside.error());
    const io::buffer piece(into);
    const auto got = io::transfer_call(file_.native(), io::direction::in, {&piece, 1}, offset, io::wait::no);
    // A blocking read reports every other outcome as well.
    return got >= 0 and static_cast<std::size_t>(got) == into.size();
}

result<void> file_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    if (not is_writable())
        return failure({EBADF, "write to an image opened for reading", file_.descriptor()});
    std::uint64_t left = bytes_in(pieces);
    if (const auto inside = check_inside({offset, left}, "write past the end of the image"); not inside)
        return inside;
    const auto done = file_.write({.buffers = pieces, .offset = offset});
    if (not done) return failure(done.error());
    if (done.bytes_transferred() == left) return {};
    // A write is short only if an error occurred after some bytes were written. To obtain the
    // error, write the rest of the piece in which it occurred.
    std::uint64_t written = done.bytes_transferred();
    for (const io::const_buffer& piece : pieces) {
        const std::uint64_t skipped = std::min<std::uint64_t>(written, piece.size());
        written -= skipped;
        offset += skipped;
        if (skipped == piece.size()) continue;
        const auto rest = piece.bytes().subspan(static_cast<std::size_t>(skipped));
        const auto again = file_.write({.buffers = rest, .offset = offset});
        if (not again) return failure(again.error());
        if (again.bytes_transferred() != rest.size())
            return failure({EIO, "write to the image", file_.descriptor()});
        offset += rest.size();
    }
    ENSURE(written == 0, "a write transfers at most its length");
    return {};
}

result<void> file_device::barrier(io::barrier_kind kind) noexcept {
    const auto done = file_.barrier(kind);
    if (not done) return failure(done.error());
    return {};
}

result<void> file_device::punch_hole(byte_extent range) noexcept {
    if (const auto inside = check_inside(range, "hole past the end of the image"); not inside) return inside;
    return file_.zero({.offset = range.offset, .length = range.length});
}

bool file_device::discard(byte_extent range) noexcept {
    // If a block is only partly in the range, the kernel would write that part.
    constexpr std::uint64_t block_bytes = 4096;
    const std::uint64_t first = (range.offset + block_bytes - 1) / block_bytes * block_bytes;
    const std::uint64_t end = (range.offset + range.length) / block_bytes * block_bytes;
    if (first >= end or not check_inside(range, "discard") or not discards_.load(std::memory_order_relaxed))
        return false;
    const auto done =
        file_.zero({.offset = first, .length = end - first}, io::file_handle::zero_method::punched);
    if (not done) discards_.store(false, std::memory_order_relaxed);
    // The kernel may zero a part of a large page that other processes use and keep the page.
    return done and io::cached_pages(file_, {.offset = range.offset, .length = range.length}) == 0;
}

std::optional<file_location> file_device::location_of(std::uint64_t offset) noexcept {
    return file_location{.file = &file_, .offset = offset, .forgets = can_forget_};
}

}  // namespace sluice::fat

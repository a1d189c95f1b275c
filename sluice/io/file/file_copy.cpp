#include "sluice/io/file/file_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/checked_byte_count.hpp"

namespace sluice::io {
namespace {

constexpr std::size_t page_bytes = 4096;

// Aligned, for files opened with direct I/O.
alignas(page_bytes) constexpr std::array<std::byte, 16 * page_bytes> zeros{};

// The length that is treated as data where a file changes during the search for holes. Short, so
// that a sparse file stays sparse.
constexpr extent_type unclear_bytes = zeros.size();

}  // namespace

result<extent_pair> next_data(int descriptor, extent_pair range) noexcept {
    const extent_type end = range.offset + range.length;
    ENSURE(end >= range.offset, "a range that lies within the file does not wrap");
    // The position after these seeks does not matter: all I/O passes its offset.
    const off_t data = ::lseek(descriptor, static_cast<off_t>(range.offset), SEEK_DATA);
    if (data < 0) {
        if (errno == ENXIO) return extent_pair{.offset = end, .length = 0};  // a hole up to the end
        if (errno == EINVAL) return range;
        return failure(error::last("lseek SEEK_DATA", descriptor));
    }
    // A file system in user space may return anything: ignore results before the range.
    const extent_type first = std::max(static_cast<extent_type>(data), range.offset);
    if (first >= end) return extent_pair{.offset = end, .length = 0};
    const off_t hole = ::lseek(descriptor, data, SEEK_HOLE);
    // ENXIO: another process truncated the file in between.
    if (hole < 0 and errno != ENXIO) return failure(error::last("lseek SEEK_HOLE", descriptor));
    // Another process punched a hole in between, or the file system contradicts itself. A caller
    // that got no bytes would repeat the call, perhaps without end. A hole that is read as data is
    // zeros.
    if (hole <= static_cast<off_t>(first))
        return extent_pair{.offset = first, .length = std::min<extent_type>(end - first, unclear_bytes)};
    return extent_pair{.offset = first, .length = std::min(static_cast<extent_type>(hole), end) - first};
}

result<void> punch_hole(int descriptor, extent_pair range) noexcept {
    ENSURE(range.length != 0, "the kernel refuses a hole of no bytes");
    while (::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) != 0) {
        if (errno == EINTR) continue;
        if (errno == ENOSYS) errno = EOPNOTSUPP;
        return failure(error::last("fallocate PUNCH_HOLE", descriptor));
    }
    return {};
}

result<void> write_zeros(int descriptor, extent_pair range) noexcept {
    while (range.length > 0) {
        const auto step = static_cast<std::size_t>(std::min<extent_type>(range.length, zeros.size()));
        const ssize_t written = checked_byte_count(
            ::pwrite(descriptor, zeros.data(), step, static_cast<off_t>(range.offset)), step);
        if (written < 0 and errno == EINTR) continue;
        if (written < 0) return failure(error::last("write zeros", descriptor));
        if (written == 0) return failure({EIO, "write zeros", descriptor});
        range.offset += static_cast<extent_type>(written);
        range.length -= static_cast<extent_type>(written);
    }
    return {};
}

}  // namespace sluice::io

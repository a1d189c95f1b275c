#include "sluice/io/file/page_cache.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

// As in the kernel (linux/mman.h of 6.5); the distribution's headers are older.
constexpr long cachestat_number = 451;
struct cachestat_range {
    std::uint64_t offset;
    std::uint64_t length;
};
struct cachestat_counts {
    std::uint64_t cached;
    std::uint64_t dirty;
    std::uint64_t under_writeback;
    std::uint64_t evicted;
    std::uint64_t recently_evicted;
};

// Returns the number of pages that the range touches.
std::uint64_t pages_of(extent_pair range) noexcept {
    ENSURE(range.length != 0, "a range of no bytes touches no page");
    const int page_bits = std::countr_zero(page_bytes());
    return ((range.offset + range.length - 1) >> page_bits) - (range.offset >> page_bits) + 1;
}

bool is_there(const file_handle& file, extent_type offset) noexcept {
    std::byte one{};
    const iovec into{.iov_base = &one, .iov_len = 1};
    return ::preadv2(file.descriptor(), &into, 1, static_cast<off_t>(offset), RWF_NOWAIT) >= 0;
}

}  // namespace

extent_type page_bytes() noexcept {
    const auto bytes = static_cast<extent_type>(::sysconf(_SC_PAGESIZE));
    ENSURE(std::has_single_bit(bytes), "offsets are rounded to pages");
    return bytes;
}

std::optional<std::uint64_t> cached_pages(const file_handle& file, extent_pair range) noexcept {
    if (range.length == 0) return 0;  // to the kernel, 0 means the whole file
    const cachestat_range asked{.offset = range.offset, .length = range.length};
    cachestat_counts found{};
    if (::syscall(cachestat_number, file.descriptor(), &asked, &found, 0U) != 0) return std::nullopt;
    return found.cached;
}

bool is_cached(const file_handle& file, extent_pair range) noexcept {
    if (range.length == 0 or file.native().in_memory) return true;
    if (const auto cached = cached_pages(file, range)) return *cached >= pages_of(range);
    return is_there(file, range.offset) and is_there(file, range.offset + range.length - 1);
}

result<file_handle> duplicate(const file_handle& file) noexcept {
    native_handle native = file.native();
    native.descriptor = ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0);
    if (native.descriptor < 0) return failure(error::last("duplicate", file.descriptor()));
    return file_handle(native);
}

}  // namespace sluice::io

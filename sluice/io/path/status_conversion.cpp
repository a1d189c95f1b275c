#include "sluice/io/path/status_conversion.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

namespace sluice::io {

// The masks are passed to the kernel unchanged.
static_assert(static_cast<unsigned>(stat_fields::type) == STATX_TYPE);
static_assert(static_cast<unsigned>(stat_fields::permissions) == STATX_MODE);
static_assert(static_cast<unsigned>(stat_fields::links) == STATX_NLINK);
static_assert(static_cast<unsigned>(stat_fields::owner) == (STATX_UID | STATX_GID));
static_assert(static_cast<unsigned>(stat_fields::accessed) == STATX_ATIME);
static_assert(static_cast<unsigned>(stat_fields::modified) == STATX_MTIME);
static_assert(static_cast<unsigned>(stat_fields::changed) == STATX_CTIME);
static_assert(static_cast<unsigned>(stat_fields::inode) == STATX_INO);
static_assert(static_cast<unsigned>(stat_fields::size) == STATX_SIZE);
static_assert(static_cast<unsigned>(stat_fields::allocated) == STATX_BLOCKS);
static_assert(static_cast<unsigned>(stat_fields::born) == STATX_BTIME);
static_assert(static_cast<unsigned>(stat_fields::direct_io) == STATX_DIOALIGN);
static_assert(static_cast<std::uint64_t>(file_attributes::compressed) == STATX_ATTR_COMPRESSED);
static_assert(static_cast<std::uint64_t>(file_attributes::immutable) == STATX_ATTR_IMMUTABLE);
static_assert(static_cast<std::uint64_t>(file_attributes::append_only) == STATX_ATTR_APPEND);
static_assert(static_cast<std::uint64_t>(file_attributes::no_dump) == STATX_ATTR_NODUMP);
static_assert(static_cast<std::uint64_t>(file_attributes::encrypted) == STATX_ATTR_ENCRYPTED);
static_assert(static_cast<std::uint64_t>(file_attributes::automount) == STATX_ATTR_AUTOMOUNT);
static_assert(static_cast<std::uint64_t>(file_attributes::mount_root) == STATX_ATTR_MOUNT_ROOT);
static_assert(static_cast<std::uint64_t>(file_attributes::verity) == STATX_ATTR_VERITY);
static_assert(static_cast<std::uint64_t>(file_attributes::direct_access) == STATX_ATTR_DAX);

file_type type_of_mode(unsigned mode) noexcept {
    switch (mode & S_IFMT) {
        case S_IFREG:
            return file_type::regular;
        case S_IFDIR:
            return file_type::directory;
        case S_IFLNK:
            return file_type::symlink;
        case S_IFIFO:
            return file_type::fifo;
        case S_IFSOCK:
            return file_type::socket;
        case S_IFBLK:
            return file_type::block_device;
        case S_IFCHR:
            return file_type::character_device;
        default:
            return file_type::unknown;
    }
}

file_status::time_point to_time_point(std::int64_t seconds, std::uint32_t nanoseconds) noexcept {
    using duration = file_status::time_point::duration;
    // One second within the range of 64 bits of nanoseconds on either side, so the
    // sum below cannot wrap.
    constexpr std::int64_t seconds_max = duration::max().count() / 1'000'000'000 - 1;
    if (seconds > seconds_max) return file_status::time_point::max();
    if (seconds < -seconds_max) return file_status::time_point::min();
    return file_status::time_point(duration(seconds * 1'000'000'000 + nanoseconds));
}

namespace {

file_status from_kernel(const struct statx& raw) noexcept {
    const auto time = [](const statx_timestamp& t) noexcept { return to_time_point(t.tv_sec, t.tv_nsec); };
    file_status status{
        .known = static_cast<stat_fields>(raw.stx_mask) & stat_fields::all,
        .type = (raw.stx_mask & STATX_TYPE) != 0 ? type_of_mode(raw.stx_mode) : file_type::unknown,
        .permission_bits = static_cast<std::uint16_t>(raw.stx_mode & 07777),
        .links = raw.stx_nlink,
        .user_id = raw.stx_uid,
        .group_id = raw.stx_gid,
        .block_bytes = raw.stx_blksize,
        .inode = raw.stx_ino,
        .device = ::makedev(raw.stx_dev_major, raw.stx_dev_minor),
        .size_bytes = raw.stx_size,
        .allocated_bytes = raw.stx_blocks * 512,
        .accessed = time(raw.stx_atime),
        .modified = time(raw.stx_mtime),
        .changed = time(raw.stx_ctime),
        .born = {},
        .attributes = static_cast<file_attributes>(raw.stx_attributes),
        .supported_attributes = static_cast<file_attributes>(raw.stx_attributes_mask)};
    if ((raw.stx_mask & STATX_BTIME) != 0) status.born = time(raw.stx_btime);
    if ((raw.stx_mask & STATX_DIOALIGN) != 0) {
        status.direct_memory_alignment_bytes = raw.stx_dio_mem_align;
        status.direct_offset_alignment_bytes = raw.stx_dio_offset_align;
    }
    return status;
}

}  // namespace

int read_status(int directory, const char* name, int flags, stat_fields wanted, file_status& into) noexcept {
    struct statx raw{};
    while (::statx(directory, name, flags, static_cast<unsigned>(wanted), &raw) != 0)
        if (errno != EINTR) return errno;
    into = from_kernel(raw);
    return 0;
}

}  // namespace sluice::io

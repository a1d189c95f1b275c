#include "sluice/io/file/file_handle.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/io/file/file_copy.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::io {
namespace {

bool opens_content(mode wanted) noexcept {
    return wanted == mode::read or wanted == mode::write or wanted == mode::append;
}

// Returns the flags for modes that open the content.
int flags_of(mode wanted) noexcept {
    ENSURE(opens_content(wanted), "the flags of the others are O_PATH");
    if (wanted == mode::append) return O_WRONLY | O_APPEND;
    return wanted == mode::write ? O_RDWR : O_RDONLY;
}

int flags_of(creation create) noexcept {
    switch (create) {
        case creation::open_existing:
            return 0;
        case creation::only_if_not_exist:
        case creation::always_new:  // for the temporary name
            return O_CREAT | O_EXCL;
        case creation::if_needed:
            return O_CREAT;
        case creation::truncate_existing:
            return O_TRUNC;
    }
    ENSURE(false, "no such way of creation");
    return 0;
}

int flags_of(caching cached) noexcept {
    switch (cached) {
        case caching::none:
            return O_DIRECT | O_SYNC;
        case caching::only_metadata:
            return O_DIRECT;
        case caching::reads:
            return O_SYNC;
        case caching::reads_and_metadata:
            return O_DSYNC;
        case caching::all:
        case caching::temporary:  // Linux has no flag for it; files on tmpfs are never written back
                                  // anyway
            return 0;
    }
    ENSURE(false, "no such way of caching");
    return 0;
}

bool is_in_memory(int descriptor) noexcept {
    handle borrowed(native_handle{.descriptor = descriptor});
    const auto volume = volume_of(borrowed);
    (void)borrowed.release();
    return volume and volume->in_memory;
}

native_handle describe(int descriptor, mode wanted, caching cached) noexcept {
    return {.descriptor = descriptor,
            .kind = handle_kind::file,
            .readable = wanted == mode::read or wanted == mode::write,
            .writable = wanted == mode::write or wanted == mode::append,
            .append_only = wanted == mode::append,
            .direct = opens_content(wanted) and (flags_of(cached) & O_DIRECT) != 0,
            .in_memory = opens_content(wanted) and is_in_memory(descriptor)};
}

int problem_of_type(unsigned st_mode) noexcept {
    if (S_ISDIR(st_mode)) return EISDIR;
    if (S_ISFIFO(st_mode) or S_ISSOCK(st_mode)) return ENXIO;
    return 0;
}

// Clears O_NONBLOCK: a ring would return EAGAIN instead of waiting for the disk.
int make_blocking(int descriptor) noexcept {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 or ::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0) return errno;
    return 0;
}

// Opens an existing file, or creates it. Without O_NONBLOCK, open would block on a FIFO until
// another process opens its other end.
result<file_handle> open_in_place(const path_handle& base, path_view path, open_how_at how, mode wanted,
                                  caching cached, open_flag flags) noexcept {
    const terminated_path text(path);
    const open_how_at at_once{
        .flags = how.flags | O_NONBLOCK, .permission_bits = how.permission_bits, .operation = how.operation};
    auto descriptor = open_at(base, text, at_once);
    bool nonblocking = true;
    if (not descriptor and descriptor.error() == std::errc::resource_unavailable_try_again and
        not has(flags, open_flag::no_wait)) {
        // Another process has a lease on it, so it is a regular file. The kernel is breaking the
        // lease, and open can wait for that.
        descriptor = open_at(base, text, how);
        nonblocking = false;
    }
    if (not descriptor) return failure(descriptor.error());

    file_handle opened(describe(*descriptor, wanted, cached));
    struct stat status{};
    if (::fstat(*descriptor, &status) != 0)
        return failure(error::with_path(errno, how.operation, path.text()));
    if (const int code = problem_of_type(status.st_mode); code != 0)
        return failure(error::with_path(code, how.operation, path.text()));
    if (nonblocking) {
        if (const int code = make_blocking(*descriptor); code != 0)
            return failure(error::with_path(code, how.operation, path.text()));
    }
    return file_handle(opened.release(), flags);
}

// Creates a file under a temporary name in the directory of `place`; `name` then holds that name.
result<int> create_temporary(int directory, temporary_name& name, const open_how_at& how,
                             std::string_view reported) noexcept {
    for (unsigned attempt = 0; attempt < limits::temporary_name_attempts_max; ++attempt) {
        const int descriptor =
            ::openat(directory, name.c_str(), how.flags | O_CREAT | O_EXCL | O_CLOEXEC, how.permission_bits);
        if (descriptor >= 0) return descriptor;
        if (errno == EEXIST) {
            name = temporary_name();
        } else if (errno != EINTR) {
            return failure(error::with_path(errno, how.operation, reported));
        }
    }
    return failure(error::with_path(EEXIST, how.operation, reported));
}

result<file_handle> open_always_new(const path_handle& base, path_view path, const open_how_at& how,
                                    mode wanted, caching cached, open_flag flags) noexcept {
    const location place(base, path, how.operation, location::parent::opened);
    if (not place.reached()) return failure(place.reached().error());
    temporary_name beside;
    const auto descriptor = create_temporary(place.directory(), beside, how, path.text());
    if (not descriptor) return failure(descriptor.error());
    file_handle created(describe(*descriptor, wanted, cached));
    if (::renameat(place.directory(), beside.c_str(), place.directory(), place.name()) != 0) {
        const error why = place.last("rename new file to");
        (void)::unlinkat(place.directory(), beside.c_str(), 0);
        return failure(why);
    }
    return file_handle(created.release(), flags);
}

// File systems without O_TMPFILE return EOPNOTSUPP; kernels without it treat it as an attempt to
// write a directory.
bool lacks_tmpfile(const error& why) noexcept {
    return why.code() == EOPNOTSUPP or why.code() == EISDIR or why.code() == ENOENT;
}

}  // namespace

result<file_handle> file_handle::open(const path_handle& base, path_view path, mode wanted, creation create,
                                      caching cached, open_flag flags, unsigned permission_bits) noexcept {
    constexpr const char* operation = "open";
    const int no_follow = has(flags, open_flag::no_follow) ? O_NOFOLLOW : 0;
    const bool truncates = create == creation::truncate_existing;
    if (not opens_content(wanted)) {
        if (create != creation::open_existing)
            return failure(error::with_path(EINVAL, operation, path.text()));
        const auto descriptor =
            open_at(base, terminated_path(path), {.flags = O_PATH | no_follow, .operation = operation});
        if (not descriptor) return failure(descriptor.error());
        return file_handle(describe(*descriptor, wanted, cached), flags);
    }
    if (truncates and wanted == mode::read) return failure(error::with_path(EINVAL, operation, path.text()));
    const open_how_at how{
        .flags = flags_of(wanted) | flags_of(create) | flags_of(cached) | no_follow | O_NOCTTY,
        .permission_bits = permission_bits & 07777U,
        .operation = operation};
    return create == creation::always_new ? open_always_new(base, path, how, wanted, cached, flags)
                                          : open_in_place(base, path, how, wanted, cached, flags);
}

result<file_handle> file_handle::temp_file(const path_handle& directory, caching cached,
                                           open_flag flags) noexcept {
    for (unsigned attempt = 0; attempt < limits::temporary_name_attempts_max; ++attempt) {
        auto opened = open(directory, temporary_name().c_str(), mode::write, creation::only_if_not_exist,
                           cached, flags, 0600);
        if (opened or opened.error() != std::errc::file_exists) return opened;
    }
    return failure({EEXIST, "create a temporary file", directory.descriptor()});
}

result<file_handle> file_handle::temp_inode(const path_handle& directory, caching cached,
                                            temp_inode_method method) noexcept {
    if (method == temp_inode_method::automatic) {
        const auto descriptor = open_at(directory, terminated_path("."),
                                        {.flags = O_TMPFILE | O_RDWR | flags_of(cached),
                                         .permission_bits = 0600,
                                         .operation = "create a file without a name in"});
        if (descriptor) return file_handle(describe(*descriptor, mode::write, cached));
        if (not lacks_tmpfile(descriptor.error())) return failure(descriptor.error());
    }
    auto named = temp_file(directory, cached);
    if (not named) return named;
    if (const auto unlinked = named->unlink_if_asked(); not unlinked) return failure(unlinked.error());
    return named;
}

file_handle& file_handle::operator=(file_handle&& other) noexcept {
    if (this != &other) {
        (void)unlink_if_asked();
        flags_ = std::exchange(other.flags_, open_flag::none);
        io_handle::operator=(std::move(other));
    }
    return *this;
}

file_handle::~file_handle() {
    (void)unlink_if_asked();
}

result<void> file_handle::unlink_if_asked() noexcept {
    if (not is_valid() or not has(flags_, open_flag::unlink_on_first_close)) return {};
    flags_ = static_cast<open_flag>(static_cast<unsigned>(flags_) &
                                    ~static_cast<unsigned>(open_flag::unlink_on_first_close));
    const auto unlinked = unlink(*this);
    if (not unlinked and unlinked.error() == std::errc::no_such_file_or_directory) return {};
    return unlinked;
}

result<void> file_handle::close() noexcept {
    const auto unlinked = unlink_if_asked();
    const auto closed = io_handle::close();
    return closed ? unlinked : closed;
}

native_handle file_handle::release() noexcept {
    flags_ = open_flag::none;
    return io_handle::release();
}

result<extent_type> file_handle::maximum_extent() const noexcept {
    struct stat status{};
    if (::fstat(descriptor(), &status) != 0) return failure(error::last("fstat", descriptor()));
    if (not S_ISBLK(status.st_mode)) return static_cast<extent_type>(status.st_size);
    std::uint64_t bytes = 0;
    if (::ioctl(descriptor(), BLKGETSIZE64, &bytes) != 0)
        return failure(error::last("ask for the device's size", descriptor()));
    return bytes;
}

result<extent_type> file_handle::truncate(extent_type length) noexcept {
    if (length > static_cast<extent_type>(std::numeric_limits<off_t>::max()))
        return failure({EFBIG, "truncate", descriptor()});
    while (::ftruncate(descriptor(), static_cast<off_t>(length)) != 0)
        if (errno != EINTR) return failure(error::last("truncate", descriptor()));
    return length;
}

result<std::span<extent_pair>> file_handle::extents(extent_pair range,
                                                    std::span<extent_pair> storage) const noexcept {
    if (storage.empty()) return failure({EINVAL, "extents", descriptor()});
    const auto length = maximum_extent();
    if (not length) return failure(length.error());
    const extent_type end = end_of(range, *length);
    std::size_t found = 0;
    for (extent_type at = range.offset; at < end and found < storage.size();) {
        const auto data = next_data(descriptor(), {.offset = at, .length = end - at});
        if (not data) return failure(data.error());
        if (data->length == 0) break;
        ENSURE(data->offset >= at and data->length <= end - data->offset, "data outside of the range");
        storage[found++] = *data;
        at = data->offset + data->length;
    }
    return storage.first(found);
}

result<void> file_handle::zero(extent_pair range, zero_method method) noexcept {
    if (not native().writable or native().append_only) return failure({EBADF, "zero", descriptor()});
    const auto length = maximum_extent();
    if (not length) return failure(length.error());
    const extent_type end = end_of(range, *length);
    if (end <= range.offset) return {};
    const extent_pair within{.offset = range.offset, .length = end - range.offset};
    if (method != zero_method::written) {
        const auto punched = punch_hole(descriptor(), within);
        if (punched or method == zero_method::punched or
            punched.error() != std::errc::operation_not_supported)
            return punched;
    }
    return write_zeros(descriptor(), within);
}

result<clone_result> file_handle::clone_extents_to(file_handle& destination, const clone_request& request,
                                                   const clone_options& options) const noexcept {
    constexpr const char* operation = "clone extents";
    if (not native().readable) return failure({EBADF, operation, descriptor()});
    if (not destination.native().writable or destination.native().append_only)
        return failure({EBADF, operation, destination.descriptor()});
    const auto length = maximum_extent();
    if (not length) return failure(length.error());
    const auto target_length = destination.maximum_extent();
    if (not target_length) return failure(target_length.error());
    return clone_extents({.from = descriptor(),
                          .to = destination.descriptor(),
                          .from_length = *length,
                          .to_length = *target_length},
                         request, options);
}

result<extent_guard> file_handle::lock_range(extent_pair range, lock_kind kind, deadline within) noexcept {
    return extent_guard::lock(descriptor(), range, kind, within);
}

}  // namespace sluice::io

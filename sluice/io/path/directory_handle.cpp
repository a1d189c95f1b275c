#include "sluice/io/path/directory_handle.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/glob.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/status_conversion.hpp"

namespace sluice::io {
namespace {

file_type type_of_record(unsigned char type) noexcept {
    return type_of_mode(static_cast<unsigned>(DTTOIF(type)));
}

// A linux_dirent64, which has the layout of glibc's struct dirent64: inode, offset of the next
// record, length of this one, type, name. Copied out: the storage is the caller's and need not be
// aligned.
struct record {
    std::uint64_t inode = 0;
    std::uint64_t next_position = 0;
    std::uint16_t length = 0;
    file_type type = file_type::unknown;
    std::string_view name;
};

record read_record(const char* at) noexcept {
    record r;
    unsigned char type = 0;
    std::memcpy(&r.inode, at + offsetof(dirent64, d_ino), sizeof r.inode);
    std::memcpy(&r.next_position, at + offsetof(dirent64, d_off), sizeof r.next_position);
    std::memcpy(&r.length, at + offsetof(dirent64, d_reclen), sizeof r.length);
    std::memcpy(&type, at + offsetof(dirent64, d_type), sizeof type);
    r.type = type_of_record(type);
    r.name = at + offsetof(dirent64, d_name);
    return r;
}

bool is_wanted(std::string_view name, std::string_view pattern) noexcept {
    if (name == "." or name == "..") return false;
    return pattern.empty() or matches_glob(pattern, name);
}

// Fills one entry. Returns false if the file no longer exists.
bool describe(int directory, const record& found, stat_fields wanted, directory_entry& entry) noexcept {
    entry = {.name = found.name, .inode = found.inode, .type = found.type, .status = {}};
    // Some file systems do not store types in their directories.
    if (entry.type == file_type::unknown) wanted = wanted | stat_fields::type;
    if (wanted == stat_fields::none) return true;
    const int code = read_status(directory, found.name.data(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted,
                                 entry.status);
    if (code == ENOENT) return false;
    if (code != 0) entry.status = {};
    if (entry.status.knows(stat_fields::type)) entry.type = entry.status.type;
    return true;
}

}  // namespace

result<directory_handle> directory_handle::open(const path_handle& base, path_view path, mode wanted,
                                                creation create, unsigned permission_bits) noexcept {
    const bool creates = create == creation::if_needed or create == creation::only_if_not_exist;
    if (wanted == mode::append or (not creates and create != creation::open_existing))
        return failure(error::with_path(EINVAL, "open directory", path.text()));

    bool created = false;
    if (creates) {
        const location place(base, path, "create directory");
        if (not place.reached()) return failure(place.reached().error());
        created = ::mkdirat(place.directory(), place.name(), permission_bits) == 0;
        if (not created and (errno != EEXIST or create == creation::only_if_not_exist))
            return failure(place.last("create directory"));
    }
    const bool lists = wanted == mode::read or wanted == mode::write;
    // A new directory is not a link. If there is a link now, another process replaced the directory
    // by it.
    const int flags = O_DIRECTORY | (lists ? O_RDONLY : O_PATH) | (created ? O_NOFOLLOW : 0);
    const auto descriptor =
        open_at(base, terminated_path(path), {.flags = flags, .operation = "open directory"});
    if (not descriptor) return failure(descriptor.error());
    return directory_handle({.descriptor = *descriptor, .kind = handle_kind::directory, .readable = lists},
                            base.confined());
}

result<enumerate_result> directory_handle::enumerate(const enumerate_request& request) const noexcept {
    if (request.entries.empty()) return failure({EINVAL, "enumerate", descriptor()});
    if (::lseek(descriptor(), static_cast<off_t>(request.position), SEEK_SET) < 0)
        return failure(error::last("enumerate", descriptor()));

    // Records that are read but do not fit into the entries are read again: limit how many.
    constexpr std::size_t usual_record_bytes = 64;
    const std::size_t room =
        std::max(limits::enumerate_storage_bytes_min, request.entries.size() * usual_record_bytes);
    const std::size_t bytes_max = std::min(request.storage.size(), room);
    std::uint64_t next = request.position;
    std::size_t filled = 0;
    // Repeated only while no entry was wanted; ends with the directory.
    while (filled == 0) {
        const long bytes = ::syscall(SYS_getdents64, descriptor(), request.storage.data(), bytes_max);
        if (bytes < 0 and errno == EINTR) continue;
        if (bytes < 0) return failure(error::last("enumerate", descriptor()));
        if (bytes == 0) break;
        for (long at = 0; at < bytes and filled < request.entries.size();) {
            const record found = read_record(request.storage.data() + at);
            ENSURE(found.length > 0 and found.length <= bytes - at);
            at += found.length;
            next = found.next_position;
            if (is_wanted(found.name, request.pattern) and
                describe(descriptor(), found, request.wanted, request.entries[filled]))
                ++filled;
        }
    }
    return enumerate_result{.entries = request.entries.first(filled), .next = next};
}

result<void> directory_handle::barrier() const noexcept {
    while (::fsync(descriptor()) != 0)
        if (errno != EINTR) return failure(error::last("fsync", descriptor()));
    return {};
}

}  // namespace sluice::io

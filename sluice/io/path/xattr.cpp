#include "sluice/io/path/xattr.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::io {
namespace {

// Runs `by_descriptor`; a descriptor opened with O_PATH is refused with EBADF, and the inode is
// then reached through its name in /proc with `by_path`.
template <class ByDescriptor, class ByPath>
ssize_t reach(const handle& open, ByDescriptor by_descriptor, ByPath by_path) noexcept {
    // The attempt always fails for a handle that only names a file.
    if (open.kind() != handle_kind::path) {
        const ssize_t done = by_descriptor(open.descriptor());
        if (done >= 0 or errno != EBADF or not open.is_valid()) return done;
    }
    return by_path(descriptor_path(open.descriptor()).c_str());
}

int name_problem(const terminated_path& name) noexcept {
    return name.problem() == 0 and name.text().size() > limits::name_bytes_max ? ENAMETOOLONG
                                                                               : name.problem();
}

result<std::size_t> fetch(const handle& open, path_view name, void* data, std::size_t size) noexcept {
    ENSURE((data == nullptr) == (size == 0), "asks for the length, or has memory for the value");
    const terminated_path text(name);
    if (const int code = name_problem(text); code != 0)
        return failure(error::with_path(code, "getxattr", name.text()));
    const ssize_t bytes = reach(
        open, [&](int fd) { return ::fgetxattr(fd, text.c_str(), data, size); },
        [&](const char* path) { return ::getxattr(path, text.c_str(), data, size); });
    if (bytes < 0) return failure(error::with_path(errno, "getxattr", name.text()));
    return static_cast<std::size_t>(bytes);
}

// getxattrat(2), of Linux 6.13, which no header here has yet; the number is the same
// on every architecture.
constexpr long call_getxattrat = 464;
struct value_room {
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint32_t flags;
};
static_assert(sizeof(value_room) == 16);

ssize_t getxattr_at(int directory, const char* entry, const char* name, std::span<std::byte> into) noexcept {
    ENSURE(not into.empty(), "a size of zero asks for the length");
    // No value is longer than the field can represent.
    const std::size_t bytes = std::min<std::size_t>(into.size(), std::numeric_limits<std::uint32_t>::max());
    const value_room room{.address = reinterpret_cast<std::uintptr_t>(into.data()),
                          .bytes = static_cast<std::uint32_t>(bytes),
                          .flags = 0};
    return ::syscall(call_getxattrat, directory, entry, AT_SYMLINK_NOFOLLOW, name, &room, sizeof room);
}

ssize_t getxattr_by_way_of_proc(int directory, std::string_view entry, const char* name,
                                std::span<std::byte> into) noexcept {
    ENSURE(not into.empty(), "a size of zero asks for the length");
    std::array<char, 32 + limits::name_bytes_max> path;
    const int bytes = std::snprintf(path.data(), path.size(), "%s/%.*s", descriptor_path(directory).c_str(),
                                    static_cast<int>(entry.size()), entry.data());
    if (bytes < 0 or static_cast<std::size_t>(bytes) >= path.size()) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return ::lgetxattr(path.data(), name, into.data(), into.size());
}

// An older kernel does not have the call, and a sandbox may deny it. (The file itself never fails
// the read of a user's attribute with EPERM.)
bool lacks_call(int code) noexcept {
    return code == ENOSYS or code == EPERM;
}

bool names_an_entry(std::string_view text) noexcept {
    return not text.empty() and text != "." and text != ".." and not text.contains('/');
}

}  // namespace

result<std::span<std::byte>> fetch_xattr_at(const handle& directory, path_view entry, path_view name,
                                            std::span<std::byte> storage) noexcept {
    const auto failed = [&](int code) { return failure({code, "getxattrat", directory.descriptor()}); };
    const terminated_path entry_text(entry);
    const terminated_path name_text(name);
    if (entry_text.problem() != 0) return failed(entry_text.problem());
    if (const int code = name_problem(name_text); code != 0) return failed(code);
    if (not names_an_entry(entry.text())) return failed(EINVAL);
    if (not directory.is_valid()) return failed(EBADF);
    // A size of zero would query the length instead.
    std::byte nothing{};
    const std::span<std::byte> into = storage.empty() ? std::span(&nothing, 1) : storage;
    ssize_t bytes = getxattr_at(directory.descriptor(), entry_text.c_str(), name_text.c_str(), into);
    if (bytes < 0 and lacks_call(errno))
        bytes = getxattr_by_way_of_proc(directory.descriptor(), entry.text(), name_text.c_str(), into);
    if (bytes < 0) return failed(errno);
    if (static_cast<std::size_t>(bytes) > storage.size()) return failed(ERANGE);
    return storage.first(static_cast<std::size_t>(bytes));
}

result<std::span<std::byte>> fetch_xattr(const handle& open, path_view name,
                                         std::span<std::byte> storage) noexcept {
    // A size of zero would query the length instead.
    std::byte nothing{};
    const bool empty = storage.empty();
    const auto bytes = fetch(open, name, empty ? &nothing : storage.data(), empty ? 1 : storage.size());
    if (not bytes) return failure(bytes.error());
    if (*bytes > storage.size()) return failure(error::with_path(ERANGE, "getxattr", name.text()));
    return storage.first(*bytes);
}

result<std::size_t> xattr_bytes(const handle& open, path_view name) noexcept {
    return fetch(open, name, nullptr, 0);
}

result<void> store_xattr(const handle& open, path_view name, std::span<const std::byte> value,
                         xattr_creation create) noexcept {
    const terminated_path text(name);
    if (const int code = name_problem(text); code != 0)
        return failure(error::with_path(code, "setxattr", name.text()));
    const int flags = create == xattr_creation::only_if_not_exist  ? XATTR_CREATE
                      : create == xattr_creation::replace_existing ? XATTR_REPLACE
                                                                   : 0;
    const ssize_t done = reach(
        open, [&](int fd) { return ::fsetxattr(fd, text.c_str(), value.data(), value.size(), flags); },
        [&](const char* path) { return ::setxattr(path, text.c_str(), value.data(), value.size(), flags); });
    if (done < 0) return failure(error::with_path(errno, "setxattr", name.text()));
    return {};
}

result<void> remove_xattr(const handle& open, path_view name) noexcept {
    const terminated_path text(name);
    if (const int code = name_problem(text); code != 0)
        return failure(error::with_path(code, "removexattr", name.text()));
    const ssize_t done = reach(
        open, [&](int fd) { return ::fremovexattr(fd, text.c_str()); },
        [&](const char* path) { return ::removexattr(path, text.c_str()); });
    if (done < 0) return failure(error::with_path(errno, "removexattr", name.text()));
    return {};
}

result<std::string_view> list_xattrs(const handle& open, std::span<char> storage) noexcept {
    char nothing{};
    const bool empty = storage.empty();
    char* const data = empty ? &nothing : storage.data();
    const std::size_t size = empty ? 1 : storage.size();
    const ssize_t bytes = reach(
        open, [&](int fd) { return ::flistxattr(fd, data, size); },
        [&](const char* path) { return ::listxattr(path, data, size); });
    if (bytes < 0) return failure(error::last("listxattr", open.descriptor()));
    if (static_cast<std::size_t>(bytes) > storage.size())
        return failure({ERANGE, "listxattr", open.descriptor()});
    return std::string_view(data, static_cast<std::size_t>(bytes));
}

}  // namespace sluice::io

#include "sluice/io/path/path_resolution.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "sluice/base/ensure.hpp"
#include "sluice/base/held_mutexes.hpp"

namespace sluice::io {
namespace {

std::uint64_t resolve_flags(confinement limit) noexcept {
    switch (limit) {
        case confinement::none:
            return 0;
        case confinement::beneath:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
        case confinement::beneath_no_symlinks:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
        case confinement::beneath_one_mount:
            return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
        case confinement::beneath_one_mount_no_symlinks:
            break;
    }
    return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
}

int open_anywhere(int directory, const char* path, const open_how_at& how) noexcept {
    for (;;) {
        const int descriptor = ::openat(directory, path, how.flags | O_CLOEXEC, how.permission_bits);
        if (descriptor >= 0 or errno != EINTR) return descriptor;
    }
}

int open_confined(int directory, const char* path, const open_how_at& how, confinement limit) noexcept {
    open_how request{};
    request.flags = static_cast<unsigned>(how.flags | O_CLOEXEC);
    // Unlike openat, openat2 refuses a mode that would not be used.
    const bool creates = (how.flags & O_CREAT) != 0 or (how.flags & O_TMPFILE) == O_TMPFILE;
    request.mode = creates ? how.permission_bits : 0;
    request.resolve = resolve_flags(limit);
    unsigned attempts = 0;
    for (;;) {
        const long descriptor = ::syscall(SYS_openat2, directory, path, &request, sizeof request);
        if (descriptor >= 0) return static_cast<int>(descriptor);
        if (errno == EINTR) continue;
        // Somebody, anywhere in the system, renamed something while `..` was being walked. Rarely twice.
        if (errno != EAGAIN or ++attempts == limits::confined_open_attempts_max) return -1;
    }
}

}  // namespace

int directory_of(const path_handle& base) noexcept {
    return base.is_valid() ? base.descriptor() : AT_FDCWD;
}

result<int> open_at(const path_handle& base, const terminated_path& path, open_how_at how) noexcept {
    held_mutexes::ensure_none();
    if (path.problem() != 0) return failure(error::with_path(path.problem(), how.operation, path.text()));
    if (not base.is_valid() and base.confined() != confinement::none)
        return failure(error::with_path(EBADF, how.operation, path.text()));
    const int descriptor = base.confined() == confinement::none
                               ? open_anywhere(directory_of(base), path.c_str(), how)
                               : open_confined(base.descriptor(), path.c_str(), how, base.confined());
    if (descriptor < 0) return failure(error::with_path(errno, how.operation, path.text()));
    return descriptor;
}

location::location(const path_handle& base, path_view path, const char* operation, parent wanted) noexcept
    : text_(path), directory_(directory_of(base)), name_(text_.c_str()) {
    if (text_.problem() != 0) {
        reached_ = failure(error::with_path(text_.problem(), operation, text()));
    } else if (base.confined() != confinement::none or wanted == parent::opened) {
        reached_ = open_parent(base, operation);
    }
}

result<void> location::open_parent(const path_handle& base, const char* operation) noexcept {
    if (not base.is_valid() and base.confined() != confinement::none)
        return failure(error::with_path(EBADF, operation, text()));
    std::string_view path = text();
    if (path.empty()) return failure(error::with_path(ENOENT, operation, path));
    while (path.ends_with('/'))
        path.remove_suffix(1);
    const std::size_t slash = path.rfind('/');
    const std::string_view component = slash == path.npos ? path : path.substr(slash + 1);
    if (component.empty() or component == "." or component == "..")
        return failure(error::with_path(EINVAL, operation, text()));
    if (component.size() > limits::name_bytes_max)
        return failure(error::with_path(ENAMETOOLONG, operation, text()));
    component.copy(last_component_.data(), component.size());
    last_component_[component.size()] = '\0';
    name_ = last_component_.data();
    if (slash == path.npos) return {};  // an entry of the base itself

    const terminated_path directory(path.substr(0, slash + 1));
    const auto opened = open_at(base, directory, {.flags = O_PATH | O_DIRECTORY, .operation = operation});
    // The caller gave the whole path and should read it, not the half that was opened.
    if (not opened) return failure(error::with_path(opened.error().code(), operation, text()));
    parent_ = path_handle({.descriptor = *opened, .kind = handle_kind::path});
    directory_ = *opened;
    return {};
}

temporary_name::temporary_name() noexcept {
    std::uint64_t random = 0;
    // Waits, and can be interrupted, only before the kernel has gathered entropy once; fails never.
    while (::getrandom(&random, sizeof random, 0) != sizeof random)
        ENSURE(errno == EINTR);
    std::snprintf(text_.data(), text_.size(), ".sluice-%016llx", static_cast<unsigned long long>(random));
}

descriptor_path::descriptor_path(int descriptor) noexcept {
    std::snprintf(text_.data(), text_.size(), "/proc/self/fd/%d", descriptor);
}

}  // namespace sluice::io

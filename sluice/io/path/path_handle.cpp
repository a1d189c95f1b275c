#include "sluice/io/path/path_handle.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>

#include "sluice/io/path/confined_open.hpp"

namespace sluice::io {

namespace {

confinement stricter_of(confinement a, confinement b) noexcept {
    using enum confinement;
    const auto is_either = [&](confinement one, confinement other) {
        return a == one or a == other or b == one or b == other;
    };
    const bool has_one_mount = is_either(beneath_one_mount, beneath_one_mount_no_symlinks);
    const bool has_no_symlinks = is_either(beneath_no_symlinks, beneath_one_mount_no_symlinks);
    if (has_one_mount) return has_no_symlinks ? beneath_one_mount_no_symlinks : beneath_one_mount;
    if (has_no_symlinks) return beneath_no_symlinks;
    return is_either(beneath, beneath) ? beneath : none;
}

}  // namespace

result<path_handle> path_handle::open(const path_handle& base, path_view path, confinement limit) noexcept {
    const terminated_path text(path);
    const auto descriptor = open_at({.descriptor = base.descriptor(), .limit = base.confined()}, text,
                                    {.flags = O_PATH | O_DIRECTORY});
    if (not descriptor) return failure(descriptor.error());
    return path_handle({.descriptor = *descriptor, .kind = handle_kind::path},
                       stricter_of(limit, base.confined()));
}

result<path_handle> path_handle::temporary_files() noexcept {
    const char* wanted = ::secure_getenv("TMPDIR");
    return open(wanted != nullptr and *wanted != '\0' ? wanted : "/tmp");
}

}  // namespace sluice::io

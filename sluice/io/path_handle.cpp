#include "sluice/io/path_handle.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>

#include "sluice/io/path_resolution.hpp"

namespace sluice::io {

result<path_handle> path_handle::open(const path_handle& base, path_view path, confinement limit) noexcept {
    const terminated_path text(path);
    const auto descriptor = open_at(base, text, {.flags = O_PATH | O_DIRECTORY});
    if (not descriptor) return failure(descriptor.error());
    return path_handle({.descriptor = *descriptor, .kind = handle_kind::path},
                       std::max(limit, base.confined()));
}

result<path_handle> path_handle::temporary_files() noexcept {
    const char* wanted = ::secure_getenv("TMPDIR");
    return open(wanted != nullptr and *wanted != '\0' ? wanted : "/tmp");
}

}  // namespace sluice::io

#include "sluice/io/path/path_resolution.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <cstdio>

#include "sluice/base/ensure.hpp"

namespace sluice::io {

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
    // The error has the whole path of the caller, not the part that was opened.
    if (not opened) return failure(error::with_path(opened.error().code(), operation, text()));
    parent_ = path_handle({.descriptor = *opened, .kind = handle_kind::path});
    directory_ = *opened;
    return {};
}

temporary_name::temporary_name() noexcept {
    std::uint64_t random = 0;
    // Waits, and can be interrupted, only before the kernel has gathered entropy once; never fails.
    while (::getrandom(&random, sizeof random, 0) != sizeof random)
        ENSURE(errno == EINTR);
    std::snprintf(text_.data(), text_.size(), ".sluice-%016llx", static_cast<unsigned long long>(random));
}

descriptor_path::descriptor_path(int descriptor) noexcept {
    std::snprintf(text_.data(), text_.size(), "/proc/self/fd/%d", descriptor);
}

}  // namespace sluice::io

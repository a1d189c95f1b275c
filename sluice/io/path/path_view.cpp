#include "sluice/io/path/path_view.hpp"

#include <limits.h>

#include <cerrno>
#include <cstring>

namespace sluice::io {

static_assert(limits::path_bytes_max == PATH_MAX and limits::name_bytes_max == NAME_MAX);

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): see the declaration of copy_
terminated_path::terminated_path(path_view path) noexcept : text_(path.text()) {
    if (text_.size() >= limits::path_bytes_max) {
        problem_ = ENAMETOOLONG;
    } else if (text_.find('\0') != std::string_view::npos) {
        // The kernel would stop at the zero and silently use a different file than the named one.
        problem_ = EINVAL;
    } else if (path.is_terminated()) {
        start_ = text_.data();
    } else {
        text_.copy(copy_.data(), text_.size());
        copy_[text_.size()] = '\0';
        start_ = copy_.data();
    }
}

}  // namespace sluice::io

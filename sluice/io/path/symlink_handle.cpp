#include "sluice/io/path/symlink_handle.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::io {
namespace {

// Creates the link under another name and renames that over `place`: readers see the old link or
// the new one, and always one of them.
result<void> replace(const location& place, const char* target) noexcept {
    for (unsigned attempt = 0; attempt < limits::temporary_name_attempts_max; ++attempt) {
        const temporary_name beside;
        if (::symlinkat(target, place.directory(), beside.c_str()) != 0) {
            if (errno == EEXIST) continue;
            return failure(place.last("create symbolic link"));
        }
        if (::renameat(place.directory(), beside.c_str(), place.directory(), place.name()) == 0) return {};
        const error why = place.last("rename");
        (void)::unlinkat(place.directory(), beside.c_str(), 0);
        return failure(why);
    }
    return failure(error::with_path(EEXIST, "create symbolic link", place.text()));
}

}  // namespace

result<symlink_handle> symlink_handle::open(const path_handle& base, path_view path) noexcept {
    const terminated_path text(path);
    const auto descriptor =
        open_at(base, text, {.flags = O_PATH | O_NOFOLLOW, .operation = "open symbolic link"});
    if (not descriptor) return failure(descriptor.error());
    symlink_handle opened({.descriptor = *descriptor, .kind = handle_kind::symlink});
    const auto status = status_of(opened, stat_fields::type);
    if (not status) return failure(status.error());
    if (status->type != file_type::symlink)
        return failure(error::with_path(EINVAL, "open symbolic link", path.text()));
    return opened;
}

result<symlink_handle> symlink_handle::create(const path_handle& base, path_view path, path_view target,
                                              creation create) noexcept {
    if (create == creation::open_existing or create == creation::truncate_existing)
        return failure(error::with_path(EINVAL, "create symbolic link", path.text()));
    const terminated_path target_text(target);
    if (target_text.problem() != 0)
        return failure(error::with_path(target_text.problem(), "create symbolic link to", target.text()));

    const bool replaces = create == creation::always_new;
    const location place(base, path, "create symbolic link",
                         replaces ? location::parent::opened : location::parent::as_needed);
    if (not place.reached()) return failure(place.reached().error());
    if (replaces) {
        if (const auto done = replace(place, target_text.c_str()); not done) return failure(done.error());
    } else if (::symlinkat(target_text.c_str(), place.directory(), place.name()) != 0) {
        if (errno != EEXIST or create != creation::if_needed)
            return failure(place.last("create symbolic link"));
    }
    return open(base, path);
}

result<std::string_view> symlink_handle::target(std::span<char> storage) const noexcept {
    const ssize_t length = ::readlinkat(descriptor(), "", storage.data(), storage.size());
    if (length < 0) return failure(error::last("read symbolic link", descriptor()));
    // The kernel truncates a longer target without an error, so a full buffer may hold only a part.
    if (static_cast<std::size_t>(length) == storage.size())
        return failure({ENAMETOOLONG, "read symbolic link", descriptor()});
    return std::string_view(storage.data(), static_cast<std::size_t>(length));
}

}  // namespace sluice::io

#include "sluice/io/path/file_status.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/status_conversion.hpp"

namespace sluice::io {

result<file_status> status_of(const handle& open, stat_fields wanted) noexcept {
    file_status status;
    // A descriptor of -1 with an empty path would refer to another directory.
    const int code =
        open.is_valid() ? read_status(open.descriptor(), "", AT_EMPTY_PATH, wanted, status) : EBADF;
    if (code != 0) return failure({code, "get status", open.descriptor()});
    return status;
}

result<file_status> status_at(const path_handle& base, path_view path, follow links,
                              stat_fields wanted) noexcept {
    const int no_follow = links == follow::no ? O_NOFOLLOW : 0;
    const terminated_path text(path);
    if (base.confined() != confinement::none) {
        // statx has no confinement, so a confined path is opened, and statx is called on its
        // descriptor.
        const auto descriptor = open_at(base, text, {.flags = O_PATH | no_follow, .operation = "get status"});
        if (not descriptor) return failure(descriptor.error());
        return status_of(handle({.descriptor = *descriptor, .kind = handle_kind::path}), wanted);
    }
    file_status status;
    const int code = text.problem() != 0
                         ? text.problem()
                         : read_status(directory_of(base), text.c_str(),
                                       links == follow::no ? AT_SYMLINK_NOFOLLOW : 0, wanted, status);
    if (code != 0) return failure(error::with_path(code, "get status", text.text()));
    return status;
}

result<void> set_times(const handle& open, const file_times& times) noexcept {
    const auto to_kernel = [](const std::optional<file_status::time_point>& when) noexcept {
        if (not when) return timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT};
        // The nanoseconds of a time before 1970 are positive, too. By hand, because the whole
        // second below the first times is outside of the clock's range.
        constexpr std::int64_t per_second = 1'000'000'000;
        const std::int64_t since_1970 = when->time_since_epoch().count();
        const std::int64_t rest = since_1970 % per_second;
        const bool is_below = rest < 0;
        return timespec{.tv_sec = since_1970 / per_second - (is_below ? 1 : 0),
                        .tv_nsec = rest + (is_below ? per_second : 0)};
    };
    const std::array<timespec, 2> wanted{to_kernel(times.accessed), to_kernel(times.modified)};
    if (not open.is_valid()) return failure({EBADF, "set times", open.descriptor()});
    // It takes no path, and so less time; it refuses a descriptor opened with O_PATH.
    if (::futimens(open.descriptor(), wanted.data()) == 0) return {};
    if (errno != EBADF) return failure(error::last("futimens", open.descriptor()));
    if (::utimensat(open.descriptor(), "", wanted.data(), AT_EMPTY_PATH) != 0)
        return failure(error::last("set times", open.descriptor()));
    return {};
}

}  // namespace sluice::io

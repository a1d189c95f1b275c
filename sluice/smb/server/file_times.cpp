#include "sluice/smb/server/file_times.hpp"

namespace sluice::smb::server {

std::expected<time_wish, wire::nt_status> time_wish_of(wire::filetime wanted) noexcept {
    using kind = time_wish::kind;
    const auto number = static_cast<std::int64_t>(wanted.ticks);
    if (number == 0) return time_wish{.what = kind::leave};
    if (number == -1) return time_wish{.what = kind::freeze};
    if (number == -2) return time_wish{.what = kind::thaw};
    if (number < 0) return std::unexpected(wire::nt_status::invalid_parameter);
    return time_wish{.what = kind::set, .time = wire::time_point_of(wanted)};
}

std::optional<vfs::time_point> kept_after(const time_wish& wish, std::optional<vfs::time_point> kept,
                                          vfs::time_point present) noexcept {
    switch (wish.what) {
        case time_wish::kind::set:
            return wish.time;
        case time_wish::kind::freeze:
            return present;
        case time_wish::kind::thaw:
            return std::nullopt;
        case time_wish::kind::leave:
            break;
    }
    return kept;
}

result<vfs::metadata> shown_status(open& one) noexcept {
    result<vfs::metadata> status = one.node->status();
    if (not status or one.file == nullptr or not one.file->change_time) return status;
    if (status->changed == one.file->change_time->of_host)
        status->changed = one.file->change_time->shown;
    else
        one.file->change_time.reset();
    return status;
}

void restore_kept_times(open& one) noexcept {
    if (one.node == nullptr or (not one.kept_access_time and not one.kept_write_time)) return;
    (void)one.node->change({.accessed = one.kept_access_time, .modified = one.kept_write_time});
}

}  // namespace sluice::smb::server

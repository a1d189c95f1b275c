#include "sluice/smb/server/metadata/file_times.hpp"

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

void show_change_time(vfs::metadata& status, file_state* file) noexcept {
    if (file == nullptr or not file->change_time) return;
    if (status.changed == file->change_time->of_host)
        status.changed = file->change_time->shown;
    else
        file->change_time.reset();
}

result<vfs::metadata> shown_status(open& one) noexcept {
    result<vfs::metadata> status = one.node->status();
    if (status) show_change_time(*status, one.file.get());
    return status;
}

void restore_change_time(open& one) noexcept {
    if (not one.kept_change_time or one.node == nullptr or one.file == nullptr) return;
    const result<vfs::metadata> present = one.node->status();
    if (present) one.file->change_time = {.shown = *one.kept_change_time, .of_host = present->changed};
}

void restore_kept_times(open& one) noexcept {
    if (one.node != nullptr and (one.kept_access_time or one.kept_write_time))
        (void)one.node->change({.accessed = one.kept_access_time, .modified = one.kept_write_time});
    restore_change_time(one);
}

}  // namespace sluice::smb::server

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

std::optional<vfs::time_point> restore_times(vfs::node& node, const kept_times& kept) noexcept {
    if (kept.accessed or kept.written)
        (void)node.change({.accessed = kept.accessed, .modified = kept.written});
    if (not kept.changed) return std::nullopt;
    const result<vfs::metadata> present = node.status();
    return present ? std::optional(present->changed) : std::nullopt;
}

void note_kept_change_time(open& one, const std::optional<vfs::time_point>& of_host) noexcept {
    if (one.kept.changed and of_host)
        one.file->change_times().set(one.file->key(), *one.kept.changed, *of_host);
}

}  // namespace sluice::smb::server

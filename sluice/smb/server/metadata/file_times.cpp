#include "sluice/smb/server/metadata/file_times.hpp"

namespace sluice::smb::server {

std::expected<requested_time, wire::nt_status> requested_time_of(wire::filetime wanted) noexcept {
    using kind = requested_time::kind;
    const auto number = static_cast<std::int64_t>(wanted.ticks);
    if (number == 0) return requested_time{.what = kind::leave};
    if (number == -1) return requested_time{.what = kind::freeze};
    if (number == -2) return requested_time{.what = kind::thaw};
    if (number < 0) return std::unexpected(wire::nt_status::invalid_parameter);
    return requested_time{.what = kind::set, .time = wire::tick_time_of(wanted)};
}

std::optional<vfs::time_point> kept_after(const requested_time& wish, std::optional<vfs::time_point> kept,
                                          vfs::time_point present) noexcept {
    switch (wish.what) {
        case requested_time::kind::set:
            return wish.time;
        case requested_time::kind::freeze:
            return present;
        case requested_time::kind::thaw:
            return std::nullopt;
        case requested_time::kind::leave:
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
    if (not of_host) return;
    if (const kept_times kept = one.kept(); kept.changed) one.file->set_change_time(*kept.changed, *of_host);
}

}  // namespace sluice::smb::server

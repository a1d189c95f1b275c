#include "sluice/smb/server/metadata/file_times.hpp"

#include "sluice/base/ensure.hpp"

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

bool keeps_after(const requested_time& wish, bool keeps) noexcept {
    switch (wish.what) {
        case requested_time::kind::set:
        case requested_time::kind::freeze:
            return true;
        case requested_time::kind::thaw:
            return false;
        case requested_time::kind::leave:
            break;
    }
    return keeps;
}

time_preserver::time_preserver(open& of, const sticky_times& kept) noexcept : of_(of), kept_(kept) {
    if (kept_.changed) shown_ = of_.file->shown_change_time();
}

void time_preserver::ask() noexcept {
    ENSURE(is_needed() and not before_, "the times to keep are asked for once, before the change");
    if (const result<vfs::metadata> status = of_.node->status()) before_ = *status;
}

void time_preserver::go_by_set_times() noexcept {
    ENSURE(not before_, "the times to keep are those asked for, or those that were set");
    if (not kept_.left) return;
    before_.emplace();
    before_->accessed = kept_.left->accessed;
    before_->modified = kept_.left->written;
    before_->changed = kept_.left->changed;
    wanted_ = kept_.left->changed;
}

void time_preserver::restore() noexcept {
    if (not before_) return;
    const auto if_kept = [](bool is_kept, vfs::time_point when) {
        return is_kept ? std::optional(when) : std::nullopt;
    };
    if (kept_.accessed or kept_.written)
        (void)of_.node->change({.accessed = if_kept(kept_.accessed, before_->accessed),
                                .modified = if_kept(kept_.written, before_->modified)});
    if (not kept_.changed) return;
    if (const result<vfs::metadata> status = of_.node->status()) changed_after_ = status->changed;
}

void time_preserver::record(const open* until_end_of) noexcept {
    if (not changed_after_ or of_.has_ended()) return;
    ENSURE(kept_.changed and before_, "a change time is kept as it was asked for");
    const bool was_shown = shown_ and shown_->of_host == before_->changed;
    const vfs::time_point kept = wanted_.value_or(was_shown ? shown_->shown : before_->changed);
    if (kept == *changed_after_) return;  // the file system has stored it
    of_.file->set_change_time({.shown = kept, .of_host = *changed_after_, .until_end_of = until_end_of});
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/open/replay.hpp"

namespace sluice::smb::server {

using wire::nt_status;

std::expected<replay_table::outcome, nt_status> replay_table::find_or_begin(const identity& which,
                                                                            bool is_replay) {
    const lock_guard held(mutex_);
    const auto [entry, is_new] = entries_.try_emplace(which);
    if (is_new) return outcome{.made = nullptr, .fresh = place(*this, which)};
    if (entry->second == nullptr) return std::unexpected(nt_status::file_not_available);
    if (not is_replay) return std::unexpected(nt_status::duplicate_objectid);
    return outcome{.made = entry->second, .fresh = std::nullopt};
}

void replay_table::keep(const identity& which, const std::shared_ptr<open>& made) {
    const lock_guard held(mutex_);
    const auto found = entries_.find(which);
    ENSURE(found != entries_.end() and found->second == nullptr, "an open is kept where it was being made");
    found->second = made;
}

void replay_table::remove(const identity& which) noexcept {
    entry_map::node_type removed;  // perhaps the last to hold its open: released without the mutex
    const lock_guard held(mutex_);
    removed = entries_.extract(which);
    ENSURE(not removed.empty(), "an entry is removed from the table once");
}

}  // namespace sluice::smb::server

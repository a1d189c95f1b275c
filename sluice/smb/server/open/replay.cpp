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

bool replay_table::adopt(const std::shared_ptr<open>& restored) {
    ENSURE(restored->is_live() and restored->create_guid, "an open is restored before it can be repeated");
    {
        const lock_guard held(mutex_);
        const identity which{.client = restored->client, .create = *restored->create_guid};
        if (not entries_.try_emplace(which, restored).second) return false;
    }
    if (not restored->progress.begin_eligibility()) end_eligibility(*restored);
    return true;
}

std::shared_ptr<open> replay_table::find(const identity& which) const noexcept {
    const lock_guard held(mutex_);
    const auto found = entries_.find(which);
    return found == entries_.end() ? nullptr : found->second;
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

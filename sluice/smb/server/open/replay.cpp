#include "sluice/smb/server/open/replay.hpp"

namespace sluice::smb::server {

using wire::nt_status;

std::expected<replay_table::outcome, nt_status> replay_table::find_or_begin(const identity& which,
                                                                            bool is_replay) {
    const auto [entry, is_new] = entries_.try_emplace(which);
    if (is_new) return outcome{.made = nullptr, .fresh = place(*this, which)};
    if (entry->second == nullptr) return std::unexpected(nt_status::file_not_available);
    if (not is_replay) return std::unexpected(nt_status::duplicate_objectid);
    return outcome{.made = entry->second, .fresh = std::nullopt};
}

}  // namespace sluice::smb::server

#include "sluice/cli/status/recent_refusals.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::array<std::string_view, 3> refusal_events{"logon failed", "share access denied",
                                                         "connection closed: its address is denied"};

[[nodiscard]] std::string_view without_port(std::string_view peer) noexcept {
    return peer.substr(0, peer.rfind(':'));
}

}  // namespace

void recent_refusals::write(smb::server::event_severity severity, std::string_view what,
                            std::initializer_list<smb::server::event_field> fields) noexcept {
    to_.write(severity, what, fields);
    if (std::ranges::find(refusal_events, what) == refusal_events.end()) return;
    try {
        refused_client fresh;
        fresh.at = clock_.utc_now();
        fresh.event = what;
        for (const auto& [name, value] : fields) {
            const std::string_view text = value.substr(0, text_bytes_max);
            if (name == "peer") fresh.peer = text;
            if (name == "user") fresh.user = text;
            if (name == "share") fresh.share = text;
            if (name == "why" or name == "rule") fresh.why = text;
        }
        keep(std::move(fresh));
    } catch (const std::bad_alloc&) {
        return;
    }
}

void recent_refusals::keep(refused_client&& fresh) {
    const lock_guard held(mutex_);
    const auto is_of_peer = [peer = without_port(fresh.peer)](const refused_client& each) {
        return without_port(each.peer) == peer;
    };
    const auto of_peer = static_cast<std::size_t>(std::ranges::count_if(kept_, is_of_peer));
    if (not fresh.peer.empty() and of_peer == refusals_of_peer_max)
        kept_.erase(std::ranges::find_if(kept_, is_of_peer));
    else if (kept_.size() == refusals_max)
        kept_.pop_front();
    kept_.push_back(std::move(fresh));
}

std::vector<refused_client> recent_refusals::list() const {
    const lock_guard held(mutex_);
    return {kept_.begin(), kept_.end()};
}

}  // namespace sluice::cli

#include "sluice/smb/server/report/refusal_log.hpp"

namespace sluice::smb::server {

bool refusal_log::is_new(const refusal& why, clock_source::steady_time now) {
    std::string key;
    for (const std::string_view part : {why.user, why.share, why.path, why.rule}) {
        key += part;
        key += '\0';
    }
    const auto known = explained_.find(key);
    if (known != explained_.end() and now - known->second < repeated_after) return false;
    if (explained_.size() >= remembered_max)
        std::erase_if(explained_, [&](const auto& each) { return now - each.second >= repeated_after; });
    if (explained_.size() >= remembered_max) explained_.clear();
    explained_[std::move(key)] = now;
    return true;
}

void refusal_log::explain(const refusal& why) {
    const clock_source::steady_time now = clock_.steady_now();
    if (now - interval_began_ >= interval) {
        interval_began_ = now;
        explained_in_interval_ = 0;
    }
    if (explained_in_interval_ >= explained_per_interval_max or not is_new(why, now)) return;
    const bool is_last = ++explained_in_interval_ == explained_per_interval_max;
    log_.write(
        event_severity::warning,
        is_last ? "access was refused; more refusals of this minute are not told" : "access was refused",
        {{"user", why.user},
         {"share", why.share},
         {"path", why.path},
         {"rule", why.rule},
         {"remedy", why.remedy}});
}

}  // namespace sluice::smb::server

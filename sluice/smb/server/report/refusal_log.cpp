#include "sluice/smb/server/report/refusal_log.hpp"

#include <utility>

namespace sluice::smb::server {

namespace {

[[nodiscard]] std::string key_of(const refusal& why) {
    std::string key;
    for (const std::string_view part : {why.user, why.share, why.path, why.rule}) {
        key += part;
        key += '\0';
    }
    return key;
}

}  // namespace

bool refusal_log::is_new(std::string&& key, clock_source::steady_time now) {
    const auto known = explained_.find(key);
    if (known != explained_.end() and now - known->second < repeated_after) return false;
    if (explained_.size() >= remembered_max)
        std::erase_if(explained_, [&](const auto& each) { return now - each.second >= repeated_after; });
    if (explained_.size() >= remembered_max) explained_.clear();
    explained_[std::move(key)] = now;
    ENSURE(explained_.size() <= remembered_max, "the refusals that are remembered have their bound");
    return true;
}

refusal_log::decision refusal_log::decide(std::string key) {
    const clock_source::steady_time now = clock_.steady_now();
    const lock_guard held(mutex_);
    if (now - interval_began_ >= interval) {
        interval_began_ = now;
        explained_in_interval_ = 0;
    }
    ENSURE(explained_in_interval_ <= explained_per_interval_max,
           "no more is explained in an interval than may be");
    if (explained_in_interval_ >= explained_per_interval_max or not is_new(std::move(key), now))
        return decision::silent;
    return ++explained_in_interval_ == explained_per_interval_max ? decision::last_of_interval
                                                                  : decision::written;
}

void refusal_log::explain(const refusal& why) {
    const decision made = decide(key_of(why));
    if (made == decision::silent) return;
    log_.write(event_severity::warning,
               made == decision::last_of_interval ? "access denied; further denials suppressed for one minute"
                                                  : "access denied",
               {{"user", why.user},
                {"share", why.share},
                {"path", why.path},
                {"rule", why.rule},
                {"hint", why.remedy}});
}

}  // namespace sluice::smb::server

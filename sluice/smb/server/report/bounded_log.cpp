#include "sluice/smb/server/report/bounded_log.hpp"

#include <utility>

#include "sluice/base/held_mutexes.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] std::string_view peer_in(std::initializer_list<event_field> fields) noexcept {
    for (const event_field& one : fields)
        if (one.name == "peer") return one.value.substr(0, one.value.rfind(':'));
    return {};
}

}  // namespace

bounded_log::decision bounded_log::decide(const std::string& key, std::uint32_t lines_at_most) {
    const auto now = clock_.steady_now();
    entry& known = events_[key];
    decision made;
    if (known.lines == 0 or now - known.began >= interval) {
        known.began = now;
        known.lines = 0;
        made.suppressed_before = std::exchange(known.suppressed, 0);
    }
    ENSURE(known.lines <= lines_at_most, "no more lines are written in an interval than may be");
    if (known.lines == lines_at_most) {
        ++known.suppressed;
        made.is_written = false;
        return made;
    }
    made.is_last = ++known.lines == lines_at_most;
    return made;
}

bounded_log::decision bounded_log::decide(std::string_view what, std::string_view peer) noexcept {
    const lock_guard only(mutex_);
    if (events_.size() >= entries_max) {
        const auto now = clock_.steady_now();
        std::erase_if(events_, [&](const auto& each) { return now - each.second.began >= interval; });
        if (events_.size() >= entries_max) events_.clear();
    }
    if (not peer.empty()) {
        const decision of_peer = decide(std::string(what) + '\0' + std::string(peer), lines_of_peer_max);
        if (not of_peer.is_written or of_peer.is_last or of_peer.suppressed_before != 0) return of_peer;
    }
    return decide(std::string(what), lines_max);
}

void bounded_log::write(event_severity severity, std::string_view what,
                        std::initializer_list<event_field> fields) noexcept {
    held_mutexes::ensure_none();
    if (severity == event_severity::detail) {
        to_.write(severity, what, fields);
        return;
    }
    const std::string_view peer = peer_in(fields);
    const decision made = decide(what, peer);
    if (made.suppressed_before != 0)
        to_.write(severity, "log lines suppressed",
                  {{"event", what}, {"peer", peer}, {"lines", std::to_string(made.suppressed_before)}});
    if (made.is_written) to_.write(severity, what, fields);
    if (made.is_last)
        to_.write(severity, "further log lines of this event suppressed for one minute",
                  {{"event", what}, {"peer", peer}});
}

}  // namespace sluice::smb::server

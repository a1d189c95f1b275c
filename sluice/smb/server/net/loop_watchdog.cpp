#include "sluice/smb/server/net/loop_watchdog.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

turn_observer::report turn_observer::observe(std::uint64_t turn, clock_source::steady_time now) noexcept {
    const clock_source::duration apart =
        std::min<clock_source::duration>(now - std::exchange(sampled_, now), limits::loop_samples_apart_max);
    const bool is_in_turn = turn % 2 == 1;
    if (is_in_turn and turn == turn_) {
        lasted_ += apart;
        if (is_stalled_ or lasted_ < limits::loop_turn_max) return {};
        is_stalled_ = true;
        return {.what = finding::stalled, .lasted = lasted_};
    }
    turn_ = turn;
    const clock_source::duration lasted = std::exchange(lasted_, {});
    if (not std::exchange(is_stalled_, false)) return {};
    return {.what = finding::recovered, .lasted = lasted + apart};
}

loop_watchdog::loop_watchdog(std::vector<const io::io_multiplexer*> loops, const clock_source& clock,
                             event_log& log)
    : clock_(clock), log_(log) {
    for (const io::io_multiplexer* const each : loops)
        loops_.push_back({.loop = each});
}

void loop_watchdog::check() noexcept {
    for (std::size_t i = 0; i != loops_.size(); ++i) {
        watched_loop& each = loops_[i];
        const turn_observer::report seen = each.observer.observe(each.loop->turn(), clock_.steady_now());
        if (seen.what == turn_observer::finding::none) continue;
        const std::string loop = std::to_string(i);
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(seen.lasted).count();
        const std::string turn_ms = std::to_string(ms);
        if (seen.what == turn_observer::finding::recovered) {
            log_.write(event_severity::warning, "event loop responds again",
                       {{"loop", loop}, {"turn_ms", turn_ms}});
            continue;
        }
        stalls_.fetch_add(1, std::memory_order_relaxed);
        log_.write(event_severity::warning, "event loop does not respond",
                   {{"loop", loop},
                    {"turn_ms", turn_ms},
                    {"multiplexer", each.loop->name()},
                    {"hint", "a file system of a share may be slow or hung"}});
    }
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/report/loop_watchdog.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

// A thread that could run but has used no CPU time in between was waiting for a processor. CPU time
// comes in ticks: a tick of which a part was counted leaves the rest for the next sample.
clock_source::duration turn_observer::counted(clock_source::duration apart,
                                              const std::optional<thread_usage>& usage) noexcept {
    if (not usage) return apart;
    const clock_source::duration before = cpu_time_.value_or(usage->cpu_time);
    cpu_time_ = usage->cpu_time;
    if (not usage->is_runnable) return apart;
    const clock_source::duration used = std::min(apart, usage->cpu_time - before);
    cpu_time_ = before + used;
    return used;
}

turn_observer::report turn_observer::observe(const sample& next) noexcept {
    const clock_source::duration apart = std::min<clock_source::duration>(
        next.now - std::exchange(sampled_, next.now), limits::loop_samples_apart_max);
    if (is_in_turn(next.turn)) {
        lasted_ += counted(apart, next.usage);
        if (is_stalled_ or lasted_ < limits::loop_stall_min) return {};
        is_stalled_ = true;
        return {.what = finding::stalled, .lasted = lasted_};
    }
    turn_ = next.turn;
    cpu_time_.reset();
    if (next.usage) cpu_time_ = next.usage->cpu_time;
    const clock_source::duration lasted = std::exchange(lasted_, {});
    if (std::exchange(is_stalled_, false)) return {.what = finding::recovered, .lasted = lasted + apart};
    if (lasted >= limits::loop_turn_max) return {.what = finding::slow, .lasted = lasted};
    return {};
}

loop_watchdog::loop_watchdog(const std::vector<const loop_activity*>& loops, const clock_source& clock,
                             thread_usage_source& threads, event_log& log)
    : clock_(clock), threads_(threads), log_(log) {
    for (const loop_activity* const each : loops)
        loops_.push_back({.activity = each});
}

void loop_watchdog::check() noexcept {
    for (std::size_t i = 0; i != loops_.size(); ++i)
        check(i, loops_[i]);
    const auto is_stuck = [](const watched_loop& each) { return each.is_stalled and not each.waits_in_call; };
    // A count, orders nothing.
    stuck_loops_.store(static_cast<std::size_t>(std::ranges::count_if(loops_, is_stuck)),
                       std::memory_order_relaxed);
}

void loop_watchdog::check(std::size_t number, watched_loop& loop) noexcept {
    using enum turn_observer::finding;
    const std::uint64_t turn = loop.activity->loop().turn();
    const int thread = loop.activity->thread();
    turn_observer::sample next{.turn = turn, .now = clock_.steady_now()};
    if (turn % 2 == 1 and thread != 0) next.usage = threads_.of(thread);
    check_call(loop, next.usage);
    const turn_observer::report seen = loop.observer.observe(next);
    switch (seen.what) {
        case none:
            break;
        case slow:
            slow_turns_.fetch_add(1, std::memory_order_relaxed);  // a count, orders nothing
            report_slow(number, loop, seen.lasted);
            break;
        case stalled:
            slow_turns_.fetch_add(1, std::memory_order_relaxed);
            stalls_.fetch_add(1, std::memory_order_relaxed);
            loop.is_stalled = true;
            break;
        case recovered:
            loop.is_stalled = false;
            write_line("event loop responds again", number, loop, seen.lasted);
            break;
    }
    // Work of the present turn only. A finding about an ended turn has been reported with its own
    // work. The stored work may belong to a later turn already.
    if (std::exchange(loop.turn, turn) != turn) loop.work.reset();
    if (const loop_activity::view now = loop.activity->look(); now.turn == turn) loop.work = now.work;
    if (seen.what == stalled) write_line("event loop does not respond", number, loop, seen.lasted);
}

// A thread that waits for a processor says nothing of the file system.
void loop_watchdog::check_call(watched_loop& loop, const std::optional<thread_usage>& usage) noexcept {
    const vfs::inline_call_slot::running_call now = loop.activity->call();
    const bool lasts = now.number != 0 and now == std::exchange(loop.call, now);
    loop.waits_in_call = lasts and not(usage and usage->is_runnable);
    if (loop.waits_in_call and usage and on_blocked_call_) on_blocked_call_(now.domain);
}

// A slow disk can make every turn slow, and must not fill another with the log.
void loop_watchdog::report_slow(std::size_t number, watched_loop& loop,
                                clock_source::duration lasted) noexcept {
    const auto now = clock_.steady_now();
    if (loop.slow_logged and now - *loop.slow_logged < limits::slow_turn_log_period) {
        ++loop.unlogged;
        return;
    }
    loop.slow_logged = now;
    write_line("slow event loop turn", number, loop, lasted, std::exchange(loop.unlogged, 0));
}

void loop_watchdog::write_line(std::string_view what, std::size_t number, const watched_loop& loop,
                               clock_source::duration lasted, std::uint64_t unlogged) noexcept {
    const std::string at = std::to_string(number);
    const std::string ms =
        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lasted).count());
    const std::string share = loop.work ? domains_.name_of(loop.work->domain) : std::string();
    log_.write(event_severity::warning, what,
               {{"loop", at},
                {"turn_ms", ms},
                {"command", loop.work ? wire::name_of(loop.work->command) : "none"},
                {"share", share.empty() ? "none" : std::string_view(share)},
                {"not_logged", std::to_string(unlogged)},
                {"multiplexer", loop.activity->loop().name()},
                {"hint", "a file system of a share may be slow or hung"}});
}

}  // namespace sluice::smb::server

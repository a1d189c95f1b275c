#include "sluice/cli/status/loop_delays.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] std::int64_t nanoseconds_of(clock_source::steady_time when) noexcept {
    return when.time_since_epoch().count();
}

}  // namespace

loop_delays::loop_delays(std::vector<io::io_multiplexer*> loops, const clock_source& clock)
    : loops_(std::move(loops)), clock_(clock), state_(std::make_shared<shared_state>(loops_.size())) {
    ENSURE(not loops_.empty(), "a server has a loop");
}

std::int64_t loop_delays::now_ns() const noexcept {
    return nanoseconds_of(clock_.steady_now());
}

void loop_delays::probe() noexcept {
    for (std::size_t i = 0; i != loops_.size(); ++i) {
        loop_state& of = state_->of_loop[i];
        // acquire pairs with the release of the probe, whose delay is read later.
        if (of.is_waiting.load(std::memory_order_acquire)) continue;
        of.posted_ns.store(now_ns(), std::memory_order_relaxed);  // only this thread reads it
        of.is_waiting.store(true, std::memory_order_relaxed);     // post() publishes it
        const auto posted = loops_[i]->post(
            [state = state_, i, &clock = clock_, began = of.posted_ns.load(std::memory_order_relaxed)] {
                loop_state& here = state->of_loop[i];
                here.delay_ns.store(nanoseconds_of(clock.steady_now()) - began, std::memory_order_relaxed);
                here.is_waiting.store(false, std::memory_order_release);  // pairs with probe()
            });
        if (not posted) of.is_waiting.store(false, std::memory_order_relaxed);
    }
}

std::vector<double> loop_delays::milliseconds() const {
    std::vector<double> all;
    for (const loop_state& of : state_->of_loop) {
        // acquire pairs with the release of the probe: its delay is visible afterwards.
        const bool is_waiting = of.is_waiting.load(std::memory_order_acquire);
        std::int64_t delay = of.delay_ns.load(std::memory_order_relaxed);
        if (is_waiting) delay = std::max(delay, now_ns() - of.posted_ns.load(std::memory_order_relaxed));
        all.push_back(static_cast<double>(std::max<std::int64_t>(delay, 0)) / 1e6);
    }
    return all;
}

}  // namespace sluice::cli

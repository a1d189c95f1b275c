#include "tests/smb_simulation/world/loop_scheduler.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/core/switch_point.hpp"

namespace sluice::smb_simulation {

loop_scheduler::loop_scheduler(std::uint64_t seed, simulated_clock& clock)
    : random_(seed), clock_(clock), switch_period_(std::uint64_t{1} << random_.below(7)) {
    smb::server::switch_point::reached = &may_switch;
}

loop_scheduler::~loop_scheduler() {
    smb::server::switch_point::reached = nullptr;
}

void loop_scheduler::record(std::uint64_t word) noexcept {
    digest_ = (digest_ ^ word) * 0x0000'0100'0000'01b3;
}

void loop_scheduler::spawn(std::string_view name, std::function<void()> body, bool may_block) {
    threads_.push_back(std::make_unique<thread>());
    thread& fresh = *threads_.back();
    fresh.name = name;
    fresh.body = std::move(body);
    fresh.may_block = may_block;
    fresh.runs = std::jthread([this, &fresh] {
        fresh.turn.acquire();
        of_this_thread_ = this;
        fresh.body();
        of_this_thread_ = nullptr;
        end_current();
    });
}

void loop_scheduler::run() {
    thread* const first = choose();
    ENSURE(first != nullptr, "a simulation has a thread");
    current_ = first;
    first->turn.release();
    all_ended_.acquire();
    for (const auto& each : threads_)
        each->runs.join();
}

// --- switching
// -------------------------------------------------------------------------------------------------

// The number of switch points without a switch is drawn from a range that is drawn per run: some
// runs switch threads at every point, others let one thread work for long.
void loop_scheduler::may_switch() noexcept {
    loop_scheduler* const self = of_this_thread_;
    if (self == nullptr) return;
    if (self->until_switch_ != 0) {
        --self->until_switch_;
        return;
    }
    self->until_switch_ = self->random_.below(self->switch_period_);
    self->mark_ready_ones();
    thread* const next = self->choose();
    if (next != self->current_) self->hand_turn_to(*next);
}

bool loop_scheduler::may_block_here() noexcept {
    return of_this_thread_ != nullptr and of_this_thread_->current_->may_block;
}

void loop_scheduler::block_here(clock_source::duration taken) noexcept {
    loop_scheduler& self = *of_this_thread_;
    const steady_time until = self.clock_.steady_now() + taken;
    while (self.clock_.steady_now() < until)
        (void)self.wait(nullptr, until, {});
}

void loop_scheduler::block_here_until(const bool* over) noexcept {
    while (not*over and of_this_thread_->park(over)) {}
}

bool loop_scheduler::park(const void* key) noexcept {
    return wait(key, never, {});
}

bool loop_scheduler::sleep(const void* loop, steady_time until, std::span<pollfd> readiness) noexcept {
    return wait(loop, until, readiness);
}

void loop_scheduler::wake(const void* loop) noexcept {
    for (const auto& each : threads_)
        if (each->now == state::waiting and each->key == loop and loop != nullptr) each->now = state::ready;
}

bool loop_scheduler::wait(const void* key, steady_time until, std::span<pollfd> readiness) noexcept {
    ENSURE(of_this_thread_ == this, "a thread of the simulation waits");
    thread& self = *current_;
    self.now = state::waiting;
    self.until = until;
    self.key = key;
    self.readiness = readiness;
    self.was_stalled = false;
    for (;;) {
        mark_ready_ones();
        if (thread* const next = choose()) {
            if (next != &self) hand_turn_to(*next);
            break;
        }
        if (not let_time_pass()) report_stall();
    }
    self.readiness = {};
    self.key = nullptr;
    return not self.was_stalled;
}

// Calls poll(2) once for the descriptors of all waiting threads.
void loop_scheduler::mark_ready_ones() noexcept {
    asked_.clear();
    for (const auto& each : threads_)
        if (each->now == state::waiting)
            asked_.insert(asked_.end(), each->readiness.begin(), each->readiness.end());
    const bool is_any_ready = not asked_.empty() and ::poll(asked_.data(), asked_.size(), 0) > 0;
    std::size_t next = 0;
    for (const auto& each : threads_) {
        if (each->now != state::waiting) continue;
        const auto its = std::span(asked_).subspan(next, each->readiness.size());
        next += its.size();
        const bool is_ready =
            is_any_ready and std::ranges::any_of(its, [](const pollfd& one) { return one.revents != 0; });
        if (is_ready or each->until <= clock_.steady_now()) each->now = state::ready;
    }
}

loop_scheduler::thread* loop_scheduler::choose() noexcept {
    const auto is_ready = [](const auto& each) { return each->now == state::ready; };
    const auto count = static_cast<std::uint64_t>(std::ranges::count_if(threads_, is_ready));
    if (count == 0) return nullptr;
    std::uint64_t drawn = count == 1 ? 0 : random_.below(count);
    for (std::size_t i = 0; i != threads_.size(); ++i) {
        if (not is_ready(threads_[i]) or drawn-- != 0) continue;
        record(i);
        return threads_[i].get();
    }
    return nullptr;
}

void loop_scheduler::hand_turn_to(thread& next) noexcept {
    ++switches_;
    record(static_cast<std::uint64_t>(clock_.steady_now().time_since_epoch().count()));
    thread& before = *current_;
    current_ = &next;
    next.turn.release();
    before.turn.acquire();
}

bool loop_scheduler::let_time_pass() noexcept {
    steady_time next = never;
    for (const auto& each : threads_)
        if (each->now == state::waiting) next = std::min(next, each->until);
    if (next == never) return false;
    clock_.advance_to(next);
    return true;
}

void loop_scheduler::report_stall() noexcept {
    stalled_.clear();
    for (const auto& each : threads_) {
        if (each->now != state::waiting) continue;
        stalled_ += each->name + " ";
        each->was_stalled = true;
        each->now = state::ready;
    }
}

void loop_scheduler::end_current() noexcept {
    current_->now = state::ended;
    for (;;) {
        mark_ready_ones();
        if (thread* const next = choose()) {
            current_ = next;
            next->turn.release();
            return;
        }
        const bool is_over =
            std::ranges::all_of(threads_, [](const auto& each) { return each->now == state::ended; });
        if (is_over) {
            all_ended_.release();
            return;
        }
        if (not let_time_pass()) report_stall();
    }
}

}  // namespace sluice::smb_simulation

#include "tests/interleave/scheduler.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "sluice/base/ensure.hpp"

namespace sluice::interleave {

namespace {

constexpr std::size_t stack_bytes = 256U << 10;
constexpr std::size_t steps_max = 100'000;  // per schedule: a thread that takes more is assumed to
                                            // loop forever

// A thread of a scenario: a separate stack, run by the thread that explores.
struct fiber {
    enum class phase { ready, asleep, ended };

    ucontext_t context{};
    std::byte* stack = nullptr;
    std::function<void()> body;
    phase where = phase::ready;
    const void* address = nullptr;  // address on which it sleeps
    std::uint64_t wakes_at_ns = never_ns;
    bool is_late = false;
    bool gave_way = false;  // and the state has not changed since
};

// One run of a scenario: the first choices are given, the following ones are the first possible.
class execution {
public:
    execution(scenario& tried, const std::vector<unsigned>& given, const limits& within)
        : scenario_(tried),
          given_(given),
          preemptions_left_(within.preemptions_max),
          kills_left_(within.kills_max),
          deadlines_(within.deadlines),
          delays_stores_(within.delays_stores or within.delays_all_stores),
          delays_all_stores_(within.delays_all_stores) {
        for (std::function<void()>& body : tried.threads()) {
            fibers_.push_back(std::make_unique<fiber>());
            fibers_.back()->body = std::move(body);
            fibers_.back()->stack = stack_of(fibers_.size() - 1);
        }
        stores_ = store_buffers(fibers_.size());
    }

    // Returns false if it failed; then `problem` has the reason.
    bool run() {
        execution* const outer = std::exchange(current, this);
        for (const auto& one : fibers_)
            prepare(*one);
        if (pick()) go_on(home_);
        is_inside_ = false;
        stores_.flush();
        current = outer;
        return problem.empty();
    }

    // Ends a step of the running thread; returns when it may take the next one.
    void end_step() noexcept {
        fiber& self = running();
        is_inside_ = false;
        if (not pick())
            ENSURE(swapcontext(&self.context, &home_) == 0);
        else if (&running() != &self)
            go_on(self.context);
        is_inside_ = true;
    }
    [[nodiscard]] fiber& running() noexcept { return *fibers_[running_]; }
    void record_change() noexcept {
        for (const auto& one : fibers_)
            one->gave_way = false;
    }
    void wake_on(const void* address, bool all) noexcept {
        for (const auto& one : fibers_) {
            if (one->where != fiber::phase::asleep or one->address != address) continue;
            one->where = fiber::phase::ready;
            if (not all) return;
        }
    }

    [[nodiscard]] bool delays(std::memory_order order) const noexcept {
        return delays_stores_ and is_inside_ and (delays_all_stores_ or order != std::memory_order_seq_cst);
    }
    void settle_before_access(std::memory_order order) {
        if (is_inside_ and order == std::memory_order_seq_cst and stores_.flush_seq_cst(running_))
            record_change();
    }
    void delay(const store_buffers::store& one) { stores_.add(running_, one); }
    [[nodiscard]] std::optional<std::uint64_t> delayed(const void* location) const {
        return is_inside_ and delays_stores_ ? stores_.latest(running_, location) : std::nullopt;
    }
    void flush_stores(const void* location, bool all_own) {
        if (not is_inside_ or stores_.empty()) return;
        if (all_own) stores_.flush(running_);
        stores_.flush_stores(running_, location);
        record_change();
    }
    void settle_for_end(const void* location) { stores_.settle_all(location); }

    [[nodiscard]] int number() const noexcept { return is_inside_ ? static_cast<int>(running_) : -1; }
    [[nodiscard]] std::uint64_t now_ns() const noexcept { return now_ns_; }
    void mortal_step() noexcept {
        if (kills_left_ == 0 or not scenario_.is_mortal(running_)) return;
        gives_way_to_death_only_ = true;
        end_step();
    }

    static thread_local execution* current;

    std::vector<unsigned> choices;               // the thread of each step
    std::vector<std::vector<unsigned>> options;  // the possible other threads of each step
    std::string problem;

private:
    // Stacks are reused in all schedules: allocating new ones would cost more than a schedule.
    [[nodiscard]] static std::byte* stack_of(std::size_t number) {
        static thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
        if (stacks.size() == number) stacks.push_back(std::make_unique<std::byte[]>(stack_bytes));
        return stacks[number].get();
    }
    static void begin() {
        fiber& self = current->running();
        self.body();
        self.where = fiber::phase::ended;
        current->end_step();
    }
    void go_on(ucontext_t& from) noexcept {
        is_inside_ = true;
        ENSURE(swapcontext(&from, &running().context) == 0);
    }
    void prepare(fiber& one) {
        ENSURE(getcontext(&one.context) == 0);
        one.context.uc_stack.ss_sp = one.stack;
        one.context.uc_stack.ss_size = stack_bytes;
        one.context.uc_link = nullptr;
        makecontext(&one.context, &execution::begin, 0);
    }

    [[nodiscard]] bool can_run(unsigned number) const {
        const fiber& one = *fibers_[number];
        return one.where == fiber::phase::ready or
               (one.where == fiber::phase::asleep and one.wakes_at_ns != never_ns);
    }
    [[nodiscard]] bool is_ready(unsigned number) const {
        return fibers_[number]->where == fiber::phase::ready;
    }
    [[nodiscard]] bool is_anybody_ready() const {
        return std::ranges::any_of(
            fibers_, [](const auto& one) { return one->where == fiber::phase::ready and not one->gave_way; });
    }
    // If time passes only while all threads sleep, only the earliest deadline can be the next
    // event.
    void keep_deadlines_back(std::vector<unsigned>& all) const {
        if (deadlines_ == timers::as_preemptions and preemptions_left_ == 0 and is_anybody_ready())
            std::erase_if(all, [&](unsigned i) { return not is_ready(i); });
        if (deadlines_ != timers::when_all_sleep or all.empty()) return;
        const auto ready_at = [&](unsigned i) { return is_ready(i) ? 0 : fibers_[i]->wakes_at_ns; };
        const std::uint64_t first = ready_at(std::ranges::min(all, {}, ready_at));
        std::erase_if(all, [&](unsigned i) { return ready_at(i) != first; });
    }
    // Returns the threads that may take the next step, beginning with the one that needs no
    // preemption.
    [[nodiscard]] std::vector<unsigned> candidates() {
        if (std::exchange(gives_way_to_death_only_, false)) return {running_};
        std::vector<unsigned> all;
        for (unsigned i = 0; i != fibers_.size(); ++i)
            if (can_run(i)) all.push_back(i);
        keep_deadlines_back(all);
        // A thread that yielded waits until the state has changed, or no other thread can run:
        // otherwise two threads that poll alternately would prevent the progress of a third.
        if (std::ranges::any_of(all, [&](unsigned i) { return not fibers_[i]->gave_way; }))
            std::erase_if(all, [&](unsigned i) { return fibers_[i]->gave_way; });
        // Deadlines last: threads that can run come first.
        const auto waits = [&](unsigned i) { return fibers_[i]->where != fiber::phase::ready; };
        std::ranges::sort(all, {}, [&](unsigned i) {
            return std::tuple(waits(i), waits(i) ? fibers_[i]->wakes_at_ns : 0, i);
        });
        const auto same = std::ranges::find(all, running_);
        const bool goes_on = has_begun_ and same != all.end() and running().where == fiber::phase::ready;
        if (not goes_on) return all;
        std::rotate(all.begin(), same, same + 1);
        if (preemptions_left_ == 0) all.resize(1);
        return all;
    }

    // Selects the thread of the next step; returns false at the end.
    [[nodiscard]] bool pick() {
        const bool only_running_may_die = gives_way_to_death_only_;
        std::vector<unsigned> possible = candidates();
        if (not only_running_may_die) add_flushes(possible);
        if (possible.empty()) {
            const bool all_ended = std::ranges::all_of(
                fibers_, [](const auto& one) { return one->where == fiber::phase::ended; });
            if (not all_ended) problem = "a thread sleeps and no thread is left to wake it";
            return false;
        }
        if (choices.size() == steps_max) {
            problem = "a thread does not terminate";
            return false;
        }
        add_deaths(possible, only_running_may_die);
        const unsigned wanted = choices.size() < given_.size() ? given_[choices.size()] : possible.front();
        ENSURE(std::ranges::find(possible, wanted) != possible.end(),
               "the same choices lead to the same state");
        std::erase(possible, wanted);
        choices.push_back(wanted);
        options.push_back(std::move(possible));
        if (wanted >= report::flush) {
            stores_.flush_one(wanted - report::flush);
            record_change();
            return pick();
        }
        if (wanted >= report::kill) {
            kill(wanted - report::kill);
            return pick();
        }
        const bool is_early =
            deadlines_ == timers::as_preemptions and not is_ready(wanted) and is_anybody_ready();
        const bool preempts =
            is_early or (has_begun_ and is_ready(running_) and not running().gave_way and wanted != running_);
        if (preempts) --preemptions_left_;
        running_ = wanted;
        has_begun_ = true;
        running().gave_way = false;
        if (running().where == fiber::phase::asleep) {
            running().is_late = true;
            now_ns_ = std::max(now_ns_, running().wakes_at_ns);
        }
        running().where = fiber::phase::ready;
        return true;
    }

    // Threads that poll also wait for stores that are not visible yet.
    void add_flushes(std::vector<unsigned>& possible) const {
        if (stores_.empty()) return;
        if (std::ranges::all_of(possible, [&](unsigned i) { return fibers_[i]->gave_way; })) possible.clear();
        for (unsigned i = 0; i != fibers_.size(); ++i)
            if (not stores_.empty(i)) possible.push_back(report::flush + i);
    }
    void add_deaths(std::vector<unsigned>& possible, bool only_of_running) const {
        if (kills_left_ == 0) return;
        for (unsigned i = 0; i != fibers_.size(); ++i)
            if (fibers_[i]->where != fiber::phase::ended and scenario_.is_mortal(i) and
                (i == running_ or not only_of_running))
                possible.push_back(report::kill + i);
    }
    void kill(unsigned number) {
        --kills_left_;
        fibers_[number]->where = fiber::phase::ended;
        scenario_.killed(number);
        record_change();
    }

    scenario& scenario_;
    const std::vector<unsigned>& given_;
    std::vector<std::unique_ptr<fiber>> fibers_;
    ucontext_t home_{};
    unsigned running_ = 0;
    bool has_begun_ = false;
    bool is_inside_ = false;
    bool gives_way_to_death_only_ = false;
    unsigned preemptions_left_;
    unsigned kills_left_;
    timers deadlines_;
    bool delays_stores_;
    bool delays_all_stores_;
    store_buffers stores_{0};
    std::uint64_t now_ns_ = 0;
};

thread_local execution* execution::current = nullptr;

// The next schedule in depth-first order: the last step where another thread could have run. Empty:
// none.
struct branch {
    std::vector<unsigned> untried;
};

}  // namespace

report explore(const std::function<std::unique_ptr<scenario>()>& make, const limits& within) {
    report result;
    std::vector<unsigned> given;
    std::vector<branch> branches;  // per step of the last schedule
    for (;;) {
        std::unique_ptr<scenario> tried = make();
        execution one(*tried, given, within);
        const bool ended = one.run();
        ++result.schedules;
        std::string problem = ended ? tried->verdict() : one.problem;
        if (not problem.empty()) {
            result.problem = std::move(problem);
            result.schedule = one.choices;
            // Threads that never ended still use it, on stacks that are not unwound.
            if (not ended) (void)tried.release();
            return result;
        }
        for (std::size_t i = branches.size(); i != one.choices.size(); ++i)
            branches.push_back({.untried = one.options[i]});
        given = one.choices;
        while (not branches.empty() and branches.back().untried.empty())
            branches.pop_back();
        if (branches.empty()) {
            result.is_complete = true;
            return result;
        }
        if (result.schedules == within.schedules_max) return result;
        given.resize(branches.size());
        given.back() = branches.back().untried.back();
        branches.back().untried.pop_back();
    }
}

void abort_if_found(const report& by) {
    if (by.problem.empty()) return;
    std::fprintf(stderr, "found: %s\n", by.problem.c_str());
    std::abort();
}

void step() noexcept {
    if (execution::current != nullptr) execution::current->end_step();
}

void give_way() noexcept {
    if (execution::current == nullptr) return;
    execution::current->running().gave_way = true;
    execution::current->end_step();
}

void record_change() noexcept {
    if (execution::current != nullptr) execution::current->record_change();
}

void mortal_step() noexcept {
    if (execution::current != nullptr) execution::current->mortal_step();
}

std::uint64_t now_ns() noexcept {
    return execution::current == nullptr ? 0 : execution::current->now_ns();
}

void sleep_on(const void* address, bool may_time_out) noexcept {
    sleep_until(address, may_time_out ? now_ns() : never_ns);
}

void sleep_until(const void* address, std::uint64_t when_ns) noexcept {
    ENSURE(execution::current != nullptr, "only threads of a scenario may sleep");
    fiber& self = execution::current->running();
    self.where = fiber::phase::asleep;
    self.address = address;
    self.wakes_at_ns = when_ns;
    self.is_late = false;
    execution::current->end_step();
}

void wake_one_on(const void* address) noexcept {
    if (execution::current != nullptr) execution::current->wake_on(address, false);
}

void wake_all_on(const void* address) noexcept {
    if (execution::current != nullptr) execution::current->wake_on(address, true);
}

bool is_late() noexcept {
    return execution::current != nullptr and execution::current->running().is_late;
}

void settle_before_access(std::memory_order order) noexcept {
    if (execution::current != nullptr) execution::current->settle_before_access(order);
}

bool is_delayed(std::memory_order order) noexcept {
    return execution::current != nullptr and execution::current->delays(order);
}

void delay(const store_buffers::store& one) noexcept {
    execution::current->delay(one);
}

std::optional<std::uint64_t> delayed(const void* location) noexcept {
    return execution::current == nullptr ? std::nullopt : execution::current->delayed(location);
}

void settle_before_change(const void* location) noexcept {
    if (execution::current != nullptr) execution::current->flush_stores(location, true);
}

void settle_before_exchange(const void* location) noexcept {
    if (execution::current != nullptr) execution::current->flush_stores(location, false);
}

void settle_for_end(const void* location) noexcept {
    if (execution::current != nullptr) execution::current->settle_for_end(location);
}

int thread_number() noexcept {
    return execution::current == nullptr ? -1 : execution::current->number();
}

const void* this_thread() noexcept {
    return execution::current == nullptr ? nullptr : &execution::current->running();
}

}  // namespace sluice::interleave

#include "tests/interleave/scheduler.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>

#include "sluice/base/ensure.hpp"

namespace sluice::interleave {

namespace {

constexpr std::size_t stack_bytes = 64U << 10;
constexpr std::size_t steps_max = 100'000;  // of one schedule: more, and a thread goes round in circles

// A thread of a scenario: a stack of its own, run by whoever is the explorer's turn to pick.
struct fiber {
    enum class phase { ready, asleep, ended };

    ucontext_t context{};
    std::byte* stack = nullptr;
    std::function<void()> body;
    phase where = phase::ready;
    const void* address = nullptr;  // that it sleeps on
    bool may_time_out = false;
    bool is_late = false;
    bool gave_way = false;  // and nothing has changed since
};

// One run of a scenario: the first choices are given, those behind them are the first possible ones.
class execution {
public:
    execution(std::vector<std::function<void()>> bodies, const std::vector<unsigned>& given,
              unsigned preemptions_max)
        : given_(given), preemptions_left_(preemptions_max) {
        for (std::function<void()>& body : bodies) {
            fibers_.push_back(std::make_unique<fiber>());
            fibers_.back()->body = std::move(body);
            fibers_.back()->stack = stack_of(fibers_.size() - 1);
        }
    }

    // False if it went wrong; then `problem` says how.
    bool run() {
        execution* const outer = std::exchange(current, this);
        for (const auto& one : fibers_)
            prepare(*one);
        while (pick())
            ENSURE(swapcontext(&home_, &fibers_[running_]->context) == 0);
        current = outer;
        return problem.empty();
    }

    void switch_home() noexcept { ENSURE(swapcontext(&running().context, &home_) == 0); }
    [[nodiscard]] fiber& running() noexcept { return *fibers_[running_]; }
    void note_change() noexcept {
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

    static thread_local execution* current;

    std::vector<unsigned> choices;               // which thread took each step
    std::vector<std::vector<unsigned>> options;  // which others could have
    std::string problem;

private:
    // The same ones for every schedule: new memory for each would cost more than the schedule.
    [[nodiscard]] static std::byte* stack_of(std::size_t number) {
        static thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
        if (stacks.size() == number) stacks.push_back(std::make_unique<std::byte[]>(stack_bytes));
        return stacks[number].get();
    }
    static void begin() {
        fiber& self = current->running();
        self.body();
        self.where = fiber::phase::ended;
        current->switch_home();
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
        return one.where == fiber::phase::ready or (one.where == fiber::phase::asleep and one.may_time_out);
    }
    // Threads that may take the next step, the one that would without a preemption first.
    [[nodiscard]] std::vector<unsigned> candidates() {
        std::vector<unsigned> all;
        for (unsigned i = 0; i != fibers_.size(); ++i)
            if (can_run(i)) all.push_back(i);
        // Who gave way waits until something has changed, or nobody else can do anything: two that look in
        // turn whether a third is done would keep it from ever being so.
        if (std::ranges::any_of(all, [&](unsigned i) { return not fibers_[i]->gave_way; }))
            std::erase_if(all, [&](unsigned i) { return fibers_[i]->gave_way; });
        // Deadlines last: what can go on goes on.
        const auto waits = [&](unsigned i) { return fibers_[i]->where != fiber::phase::ready; };
        std::ranges::sort(all, {}, [&](unsigned i) { return std::pair(waits(i), i); });
        const auto same = std::ranges::find(all, running_);
        const bool goes_on = has_begun_ and same != all.end() and running().where == fiber::phase::ready;
        if (not goes_on) return all;
        std::rotate(all.begin(), same, same + 1);
        if (preemptions_left_ == 0) all.resize(1);
        return all;
    }

    // Decides who takes the next step; false at the end.
    [[nodiscard]] bool pick() {
        std::vector<unsigned> possible = candidates();
        if (possible.empty()) {
            const bool all_ended = std::ranges::all_of(
                fibers_, [](const auto& one) { return one->where == fiber::phase::ended; });
            if (not all_ended) problem = "a thread sleeps and nobody is left to wake it";
            return false;
        }
        if (choices.size() == steps_max) {
            problem = "a thread goes round in circles";
            return false;
        }
        const unsigned wanted = choices.size() < given_.size() ? given_[choices.size()] : possible.front();
        ENSURE(std::ranges::find(possible, wanted) != possible.end(),
               "the same choices lead to the same place");
        const bool preempts = has_begun_ and running().where == fiber::phase::ready and
                              not running().gave_way and wanted != running_;
        if (preempts) --preemptions_left_;
        std::erase(possible, wanted);
        choices.push_back(wanted);
        options.push_back(std::move(possible));
        running_ = wanted;
        has_begun_ = true;
        running().gave_way = false;
        if (running().where == fiber::phase::asleep) running().is_late = true;
        running().where = fiber::phase::ready;
        return true;
    }

    const std::vector<unsigned>& given_;
    std::vector<std::unique_ptr<fiber>> fibers_;
    ucontext_t home_{};
    unsigned running_ = 0;
    bool has_begun_ = false;
    unsigned preemptions_left_;
};

thread_local execution* execution::current = nullptr;

// The next schedule in depth-first order: the last place where another thread could have gone. Empty: none.
struct branch {
    std::vector<unsigned> untried;
};

}  // namespace

report explore(const std::function<std::unique_ptr<scenario>()>& make, const limits& within) {
    report result;
    std::vector<unsigned> given;
    std::vector<branch> branches;  // of each step of the last schedule
    for (;;) {
        std::unique_ptr<scenario> tried = make();
        execution one(tried->threads(), given, within.preemptions_max);
        const bool ended = one.run();
        ++result.schedules;
        std::string problem = ended ? tried->verdict() : one.problem;
        if (not problem.empty()) {
            result.problem = std::move(problem);
            result.schedule = one.choices;
            // Threads that never ended still use it, on stacks that nobody unwinds.
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

void step() noexcept {
    if (execution::current != nullptr) execution::current->switch_home();
}

void give_way() noexcept {
    if (execution::current == nullptr) return;
    execution::current->running().gave_way = true;
    execution::current->switch_home();
}

void note_change() noexcept {
    if (execution::current != nullptr) execution::current->note_change();
}

void sleep_on(const void* address, bool may_time_out) noexcept {
    ENSURE(execution::current != nullptr, "only threads of a scenario sleep");
    fiber& self = execution::current->running();
    self.where = fiber::phase::asleep;
    self.address = address;
    self.may_time_out = may_time_out;
    self.is_late = false;
    execution::current->switch_home();
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

const void* this_thread() noexcept {
    return execution::current == nullptr ? nullptr : &execution::current->running();
}

}  // namespace sluice::interleave

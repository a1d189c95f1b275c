#include "tests/interleave/fs_mutex_scenario.hpp"

#include <unistd.h>

#include <algorithm>

namespace sluice::interleave {

using fsmutex::entity;
using std::chrono::nanoseconds;

namespace {

// In the time of the scenario, where every process runs without delay.
constexpr std::chrono::milliseconds late_at_most{10};

}  // namespace

report explore(const plan& what, const limits& within) {
    return explore([&] { return std::make_unique<fs_mutex_scenario>(what); }, within);
}

std::vector<std::function<void()>> fs_mutex_scenario::threads() {
    const auto count = static_cast<unsigned>(plan_.processes.size());
    if (plan_.prepare) plan_.prepare(kernel_);
    kernel_.leave_room(plan_.has_room_for);
    mutexes_.resize(count);
    std::vector<std::function<void()>> bodies;
    at_work_ = count;
    for (unsigned i = 0; i != count; ++i) {
        if (not plan_.opens_in_time) kernel_.as(i, [&] { open(i); });
        bodies.emplace_back([this, i] { run(i); });
    }
    bodies.emplace_back([this] { clean_up(); });
    return bodies;
}

void fs_mutex_scenario::open(unsigned process) {
    mutexes_[process] = plan_.open({.clock = &kernel_.clock(), .random = &kernel_.random(process)});
    expect(mutexes_[process] != nullptr, "the mutex could not be opened");
}

void fs_mutex_scenario::run(unsigned process) {
    if (plan_.opens_in_time) open(process);
    if (mutexes_[process] != nullptr)
        for (const visit& each : plan_.processes[process])
            make(process, each);
    if (plan_.opens_in_time) mutexes_[process].reset();
    (void)mutexes_[process].release();  // the mutex ends with its process
    kernel_.kill(process);
    --at_work_;
    work_ended_ns_ = now_ns();
    wake_all_on(&at_work_);
}

void fs_mutex_scenario::forge(unsigned process, const forgery& what) {
    const int file = mutexes_[process]->file_descriptor();
    expect(::pwrite(file, &what.word, sizeof what.word, static_cast<off_t>(what.offset)) > 0,
           "the forged word could not be written");
}

void fs_mutex_scenario::make(unsigned process, const visit& one) {
    if (one.forges) return forge(process, *one.forges);
    auto& mutex = *mutexes_[process];
    party& self = parties_[process];
    const std::uint64_t began_ns = now_ns();
    asks(process, one);
    auto held = one.tries                 ? mutex.try_lock(one.wanted)
                : one.within.count() >= 0 ? mutex.lock(one.wanted, one.within)
                                          : mutex.lock(one.wanted);
    if (not held) return end_of_wait(process, held.error(), began_ns);
    got(process, held->owner_died());
    step();
    if (one.stays.count() != 0)
        sleep_until(&self, now_ns() + static_cast<std::uint64_t>(nanoseconds(one.stays).count()));
    self.where = phase::leaves;
    // Deaths that were reported to this process may be forgotten from here on.
    const bool was_reported = held->owner_died();
    for (const entity each : one.wanted)
        if (was_reported and each.is_exclusive() and news_[each.number()] == news::surely)
            news_[each.number()] = news::perhaps;
    const auto unlocked = held->unlock();
    expect(unlocked or is_of_damage(unlocked.error()), "an unlock failed");
    for (const entity each : one.wanted)
        if (was_reported and each.is_exclusive()) news_[each.number()] = news::none;
    self.where = phase::away;
    self.now = nullptr;
}

void fs_mutex_scenario::asks(unsigned process, const visit& one) {
    party& self = parties_[process];
    self.where = phase::asks;
    ++self.visits;
    self.now = &one;
    self.behind = {};
    inspect();
    if (not plan_.is_in_order) return;
    for (unsigned other = 0; other != parties_.size(); ++other) {
        const party& each = parties_[other];
        if (other != process and each.where == phase::asks and not each.is_dead and
            plan_.is_in_order(kernel_.content(), kernel_.content_bytes(), other))
            self.behind[other] = each.visits + 1;
    }
}

void fs_mutex_scenario::got(unsigned process, bool owner_died) {
    party& self = parties_[process];
    self.where = phase::holds;
    if (plan_.is_attacked) return;
    inspect();
    for (unsigned other = 0; other != parties_.size(); ++other) {
        const party& each = parties_[other];
        if (other == process or each.is_dead or not conflicts(self, each)) continue;
        expect(each.where != phase::holds, "two processes hold one entity");
        expect(each.where != phase::asks or self.behind[other] != each.visits + 1,
               "a later request was granted first");
    }
    for (const entity each : self.now->wanted)
        expect(news_[each.number()] != news::surely or owner_died, "the death of a holder was not reported");
    expect(not owner_died or deaths_ != 0, "a death was reported that did not happen");
}

void fs_mutex_scenario::end_of_wait(unsigned process, const error& why, std::uint64_t began_ns) {
    party& self = parties_[process];
    self.where = phase::away;
    if (is_of_damage(why)) return;
    if (why == std::errc::no_space_on_device and plan_.has_room_for != ~std::uint64_t{0}) return;
    expect(why == std::errc::timed_out and (self.now->tries or self.now->within.count() >= 0),
           "a request failed");
    if (not self.now->tries) {
        const auto took = nanoseconds(now_ns() - began_ns);
        expect(took >= self.now->within, "a wait ended before its deadline");
        expect(took <= self.now->within + late_at_most, "a wait ended too long after its deadline");
    }
    self.now = nullptr;
}

void fs_mutex_scenario::record_news(const party& of, news what) {
    for (const entity each : of.now->wanted)
        if (each.is_exclusive()) news_[each.number()] = std::max(news_[each.number()], what);
}

void fs_mutex_scenario::killed(unsigned process) {
    party& self = parties_[process];
    (void)mutexes_[process].release();
    kernel_.kill(process);
    self.is_dead = true;
    ++deaths_;
    if (self.where == phase::holds and plan_.reports_deaths) record_news(self, news::surely);
    --at_work_;
    work_ended_ns_ = now_ns();
    wake_all_on(&at_work_);
}

// After the end of all others: a further process acquires every entity, receives all unreported
// deaths, and leaves no files.
void fs_mutex_scenario::clean_up() {
    const auto process = static_cast<unsigned>(parties_.size());
    while (at_work_ != 0)
        sleep_on(&at_work_, false);
    kernel_.leave_room(~std::uint64_t{0});
    auto mutex = plan_.open({.clock = &kernel_.clock(), .random = &kernel_.random(process)});
    expect(mutex != nullptr, "the mutex could not be opened again");
    if (mutex == nullptr) return;
    std::vector<entity> all;
    for (const auto& visits : plan_.processes)
        for (const visit& each : visits)
            for (const entity one : each.wanted)
                all.emplace_back(one.number());
    auto held = mutex->lock(all, std::chrono::seconds(1));
    const bool is_found_now = not held and is_of_damage(held.error());
    expect(held.has_value() or is_found_now, "an entity is still locked");
    if (not held or plan_.is_attacked) return;
    const bool is_reported = std::ranges::find(news_, news::surely) == news_.end() or held->owner_died();
    expect(is_reported, "the death of a holder was never reported");
    expect(not held->owner_died() or deaths_ != 0, "a death was reported that did not happen");
    (void)held->unlock();
    held = mutex->try_lock(all);
    expect(held.has_value() and not held->owner_died(), "a death was reported again after the repair");
    if (held) (void)held->unlock();
    mutex.reset();
}

std::string fs_mutex_scenario::verdict() {
    if (problem_ != nullptr) return problem_;
    if (kernel_.file_count() != plan_.leaves_files) return "a file remains";
    if (nanoseconds(work_ended_ns_) > plan_.passes_at_most)
        return "processes waited for " + std::to_string(work_ended_ns_ / 1000) + " us";
    return "";
}

}  // namespace sluice::interleave

#include "sluice/smb/server/session/logon_throttle.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

using std::chrono::milliseconds;

logon_throttle::~logon_throttle() {
    const lock_guard held(mutex_);
    ENSURE(waiting_ == 0, "attempts leave before the throttle goes");
}

logon_throttle::attempt::~attempt() {
    if (of_ != nullptr) of_->end(*this);
}

namespace {

// How much of an IPv6 address counts together, and how many failures of that are free. All
// are the same of IPv4.
struct level {
    unsigned bits;
    unsigned failures_free;
};
constexpr std::array<level, 3> levels{{{128, limits::logon_failures_free},
                                       {64, limits::logon_failures_free_per_network},
                                       {48, 8 * limits::logon_failures_free_per_network}}};

}  // namespace

milliseconds logon_throttle::pause_of(const entry& which) noexcept {
    if (which.failures <= which.failures_free) return milliseconds(0);
    const unsigned doublings = std::min(which.failures - which.failures_free, 16U);
    return std::min(limits::logon_delay_max, milliseconds(50) * (1U << doublings));
}

bool logon_throttle::is_expired(const entry& which, clock_source::steady_time now) const noexcept {
    return now - which.latest > failures_expire_after;
}

// The smallest part of an address whose proofs wait; null if none does.
logon_throttle::entry* logon_throttle::delayed(const io::socket_address& from,
                                               clock_source::steady_time now) noexcept {
    for (const level& each : levels) {
        const auto found = entries_.find(client_address(from, each.bits));
        if (found != entries_.end() and not is_expired(found->second, now) and
            pause_of(found->second) != milliseconds(0))
            return &found->second;
    }
    return nullptr;
}

logon_throttle::admission logon_throttle::enter(const io::socket_address& from) {
    admission entered;
    std::optional<limit> reached;
    {
        const lock_guard held(mutex_);
        reached = enter(from, entered);
    }
    if (reached) rejections_.add(*reached, client_address(from).text());
    return entered;
}

std::optional<limit> logon_throttle::enter(const io::socket_address& from, admission& entered) {
    const auto now = clock_.steady_now();
    entry* const found = delayed(from, now);
    entered.is_immediate = found == nullptr;
    if (entered.is_immediate) return std::nullopt;
    entry& known = *found;
    if (known.queue.empty() and not known.is_checking and now >= known.check_next) {
        entered.is_immediate = known.is_checking = true;
        entered.checking = attempt(*this, known, 0);
        return std::nullopt;
    }
    if (known.queue.size() >= limits::logon_waiters_per_address_max) return limit::logon_waiters_per_address;
    if (waiting_ >= limits::logon_waiters_max) return limit::logon_waiters;
    ++waiting_;
    known.queue.push_back(next_number_);
    entered.waiting = attempt(*this, known, next_number_++);
    ENSURE(known.queue.size() <= waiting_, "the attempts of an address are among all that wait");
    return std::nullopt;
}

milliseconds logon_throttle::wait_for(attempt& which) noexcept {
    const lock_guard held(mutex_);
    entry& known = *which.at_;
    const auto now = clock_.steady_now();
    const auto place = std::ranges::find(known.queue, which.number_) - known.queue.begin();
    ENSURE(which.of_ == this and static_cast<std::size_t>(place) != known.queue.size(),
           "an attempt that waits is in the queue");
    if (place != 0) return std::min(sleep_max, place * sleep_min);
    if (known.is_checking) return sleep_min;
    if (now >= known.check_next) {
        leave(known, std::exchange(which.number_, 0));
        known.is_checking = true;
        return milliseconds(0);
    }
    return std::clamp(std::chrono::ceil<milliseconds>(known.check_next - now), milliseconds(1), sleep_max);
}

void logon_throttle::failed(const io::socket_address& from) {
    const lock_guard held(mutex_);
    std::optional<client_address> before;
    for (const level& each : levels) {
        const client_address part(from, each.bits);
        if (part != before) failed(part, each.failures_free);
        before = part;
    }
}

void logon_throttle::failed(const client_address& from, unsigned failures_free) {
    const auto now = clock_.steady_now();
    auto found = entries_.find(from);
    if (found == entries_.end()) {
        make_room();
        found = entries_.try_emplace(from).first;
        found->second.age = by_age_.insert(by_age_.end(), from);
    } else {
        by_age_.splice(by_age_.end(), by_age_, found->second.age);
    }
    ENSURE(entries_.size() == by_age_.size(), "each address has an age");
    entry& known = found->second;
    known.failures_free = failures_free;
    if (is_expired(known, now)) known.failures = 0;
    known.latest = now;
    ++known.failures;
    known.check_next = now + pause_of(known);
}

void logon_throttle::end(const attempt& ending) noexcept {
    const lock_guard held(mutex_);
    if (ending.number_ != 0) return leave(*ending.at_, ending.number_);
    ENSURE(ending.at_->is_checking, "a proof that is checked is known");
    ending.at_->is_checking = false;
}

void logon_throttle::leave(entry& at, std::uint64_t number) noexcept {
    const auto found = std::ranges::find(at.queue, number);
    ENSURE(found != at.queue.end(), "an attempt leaves once");
    ENSURE(waiting_ != 0, "an attempt in a queue is counted");
    at.queue.erase(found);
    --waiting_;
}

// Few addresses have attempts that wait, and those stay.
void logon_throttle::make_room() noexcept {
    static_assert(addresses_max > limits::logon_waiters_max);
    if (entries_.size() < addresses_max) return;
    auto oldest = by_age_.begin();
    for (const entry* one = &entries_.at(*oldest); one->is_checking or not one->queue.empty();
         one = &entries_.at(*++oldest))
        ENSURE(std::next(oldest) != by_age_.end(), "most addresses have no attempt");
    entries_.erase(*oldest);
    by_age_.erase(oldest);
}

}  // namespace sluice::smb::server

#include "sluice/fsmutex/queue/mapped_queue.hpp"

#include <algorithm>
#include <bitset>
#include <utility>

namespace sluice::fsmutex {

using namespace mapped;

namespace {

constexpr std::uint64_t number_of(std::uint64_t bits) noexcept {
    return bits & ~entity::exclusive_bit;
}

}  // namespace

std::uint32_t& mapped_queue::bucket_of(std::uint64_t bits) const noexcept {
    // Multiplicative hashing (Knuth): users may number their entities consecutively, and the low
    // bits of a product mix badly.
    return at_->heads[(number_of(bits) * 0x9e37'79b9'7f4a'7c15) >> 52];
}
static_assert(buckets == 1U << (64 - 52));

mapped_queue::name mapped_queue::find_head(std::uint64_t bits) noexcept {
    name head = read_once(bucket_of(bits));
    for (std::uint32_t steps = 0; head != 0 and may_go_on(steps);) {
        const link& one = link_at(head);
        if (number_of(read_once(one.bits)) == number_of(bits)) return head;
        head = read_once(one.bucket_next);
    }
    return 0;
}

std::uint32_t mapped_queue::records_used() noexcept {
    const std::uint32_t used = read_once(at_->records_used);
    expect(used <= requests_max);
    return std::min(used, requests_max);
}

std::uint32_t mapped_queue::links_used(std::uint32_t number) noexcept {
    const std::uint32_t used = read_once(at_->requests[number].links_used);
    expect(used <= links_per_request);
    return std::min(used, links_per_request);
}

// Returns the first record of the request that a link belongs to.
std::uint32_t mapped_queue::request_of(name one) noexcept {
    const std::uint32_t record = checked(one - 1, links_max) / links_per_request;
    return checked(read_once(at_->requests[record].first_record), requests_max);
}

template <class Visit>
void mapped_queue::for_each_record(std::uint32_t first, Visit&& visit) noexcept {
    std::uint32_t steps = 0;
    for (std::uint32_t rest = first + 1; rest != 0 and may_go_on(steps);) {
        const std::uint32_t number = checked(rest - 1, requests_max);
        expect(read_once(at_->requests[number].first_record) == first);
        rest = read_once(at_->requests[number].next_record);  // before `visit` frees it
        visit(number);
    }
}
template <class Visit>
void mapped_queue::for_each_link_of(std::uint32_t number, Visit&& visit) noexcept {
    const std::uint32_t used = links_used(number);
    for (std::uint32_t i = 0; i != used and not is_damaged_; ++i)
        visit(name_of(number, i));
}
template <class Visit>
void mapped_queue::for_each_link(std::uint32_t first, Visit&& visit) noexcept {
    for_each_record(first, [&](std::uint32_t number) { for_each_link_of(number, visit); });
}

// --- records

std::uint32_t mapped_queue::take_record() noexcept {
    const std::uint32_t free = read_once(at_->free_record);
    if (free == 0) {
        const std::uint32_t fresh = checked(read_once(at_->records_used), requests_max);
        at_->records_used = fresh + 1;
        return fresh;
    }
    const std::uint32_t number = checked(free - 1, requests_max);
    at_->free_record = read_once(at_->requests[number].next_record);
    return number;
}

void mapped_queue::free_record(std::uint32_t number) noexcept {
    record& freed = at_->requests[number];
    // release: the stores below must not be visible before this one if this process dies in
    // between.
    freed.state.store(unused, std::memory_order_release);
    freed.next_record = at_->free_record;
    at_->free_record = number + 1;
}

bool mapped_queue::has_tombstones(std::uint32_t number) noexcept {
    const link* const links = at_->requests[number].links;
    return std::any_of(links, links + links_used(number),
                       [](const link& each) { return each.is_tombstone != 0; });
}

// --- queues

bool mapped_queue::may_be_granted(const link& one) noexcept {
    const name previous = read_once(one.previous);
    if (previous == 0) return true;
    const link& before = link_at(previous);
    if (before.is_tombstone != 0) return true;
    return not is_exclusive(one) and not is_exclusive(before) and before.is_granted != 0;
}

void mapped_queue::grant(name one) noexcept {
    link& granted_link = link_at(one);
    granted_link.is_granted = 1;
    const name previous = read_once(granted_link.previous);
    if (previous == 0) return;
    const link& before = link_at(previous);
    granted_link.has_news = before.is_tombstone != 0 or before.has_news != 0;
}

bool mapped_queue::queue(name fresh, std::uint64_t bits) noexcept {
    link& own = link_at(fresh);
    std::uint32_t& bucket = bucket_of(bits);
    const name in_bucket = read_once(bucket);
    const name head = in_bucket == 0 ? 0 : find_head(bits);
    link made{};  // stored at once: reading parts together would stall
    made.bits = bits;
    made.tail = fresh;
    made.is_queued = 1;
    if (head == 0) {
        made.bucket_next = in_bucket;
        made.is_granted = 1;
        own = made;
        bucket = fresh;
        return true;
    }
    link& first = link_at(head);
    const name last = read_once(first.tail);
    made.previous = last;
    own = made;
    expect(read_once(link_at(last).next) == 0);
    link_at(last).next = fresh;
    first.tail = fresh;
    if (may_be_granted(own)) grant(fresh);
    return false;
}

// Puts the next link, or none, in the place of the first.
void mapped_queue::unlink_head(name head, name successor) noexcept {
    const link& leaving = link_at(head);
    const name bucket_next = read_once(leaving.bucket_next);
    if (successor != 0) {
        link& next = link_at(successor);
        expect(read_once(next.previous) == head);
        next.previous = 0;
        next.tail = read_once(leaving.tail);
        next.bucket_next = bucket_next;
    } else {
        expect(read_once(leaving.tail) == head);
    }
    std::uint32_t* pointer = &bucket_of(read_once(leaving.bits));
    for (std::uint32_t steps = 0; may_go_on(steps);) {
        const name seen = read_once(*pointer);
        if (seen == head) {
            *pointer = successor != 0 ? successor : bucket_next;
            return;
        }
        pointer = &link_at(seen).bucket_next;  // damaged if this is the end of the bucket
    }
}

void mapped_queue::dequeue(name leaving, wake_list& wake) noexcept {
    link& own = link_at(leaving);
    const name next = read_once(own.next);
    const name previous = read_once(own.previous);
    expect(own.is_queued != 0);
    std::uint32_t& bucket = bucket_of(read_once(own.bits));
    if (previous == 0 and next == 0 and read_once(bucket) == leaving) [[likely]] {
        expect(read_once(own.tail) == leaving);
        bucket = read_once(own.bucket_next);
        own.is_queued = 0;
        return;
    }
    if (previous == 0) {
        unlink_head(leaving, next);
    } else {
        link& before = link_at(previous);
        expect(read_once(before.next) == leaving);
        before.next = next;
        link& after = next != 0 ? link_at(next) : link_at(find_head(read_once(own.bits)));
        std::uint32_t& back = next != 0 ? after.previous : after.tail;
        expect(read_once(back) == leaving);
        back = previous;
    }
    own.is_queued = 0;
    grant_from(next, wake);
}

void mapped_queue::grant_from(name first, wake_list& wake) noexcept {
    std::uint32_t steps = 0;
    for (name one = first; one != 0 and may_go_on(steps); one = read_once(link_at(one).next)) {
        if (link_at(one).is_granted != 0 or not may_be_granted(link_at(one))) return;
        grant(one);
        const std::uint32_t number = request_of(one);
        record& of = at_->requests[number];
        of.owner_died |= link_at(one).has_news;
        const std::uint32_t blocked = read_once(of.blocked);
        expect(blocked != 0);
        of.blocked = blocked - 1;
        if (blocked == 1) mark_granted(number, wake);
    }
}

void mapped_queue::mark_granted(std::uint32_t number, wake_list& wake) noexcept {
    // release: pairs with the acquire of the owner's poll; the previous
    // holder's writes come before.
    const std::uint32_t before = at_->requests[number].state.exchange(granted, std::memory_order_acq_rel);
    expect(is_waiting(before));
    if (before == asleep) wake.add(number);
    wake_successor(read_once(link_at(name_of(number, 0)).next), wake);
}

// Waking a process takes longer than most hold a lock. So the next waiter is woken one turn ahead.
void mapped_queue::wake_successor(name successor, wake_list& wake) noexcept {
    if (successor != 0) wake_waiter(request_of(successor), wake);
}

// Wakes the next request of this CPU: that takes no interrupt of another CPU.
void mapped_queue::wake_follower(const record& leaving, wake_list& wake) noexcept {
    const std::uint32_t successor = read_once(leaving.follower);
    if (successor == 0) return;
    const std::uint32_t number = checked(successor - 1, requests_max);
    const record& follower = at_->requests[number];
    const std::uint32_t neighbour = read_once(follower.neighbour);
    if (neighbour != 0 and neighbour <= requests_max and &at_->requests[neighbour - 1] == &leaving and
        follower.neighbour_arrival == leaving.arrival.load(std::memory_order_relaxed))
        wake_waiter(number, wake);
}

void mapped_queue::wake_waiter(std::uint32_t number, wake_list& wake) noexcept {
    std::uint32_t seen = asleep;
    // relaxed: only a hint that polling is worthwhile.
    if (at_->requests[number].state.compare_exchange_strong(seen, next_up, std::memory_order_relaxed))
        wake.add(number);
    else if (seen == waiting)
        (void)at_->requests[number].state.compare_exchange_strong(seen, next_up, std::memory_order_relaxed);
}

void mapped_queue::remove_tombstone(name of) noexcept {
    wake_list nobody;  // a link after a tombstone does not wait for it
    dequeue(of, nobody);
    link_at(of).is_tombstone = 0;
    const std::uint32_t number = checked(of - 1, links_max) / links_per_request;
    if (not has_tombstones(number)) free_record(number);
}

// --- requests

bool mapped_queue::is_contended(std::span<const entity> wanted) noexcept {
    return std::any_of(wanted.begin(), wanted.end(), [&](entity each) {
        const name head = find_head(each.bits());
        if (head == 0) return false;
        const link& last = link_at(read_once(link_at(head).tail));
        if (last.is_tombstone != 0) return false;
        return each.is_exclusive() or is_exclusive(last) or last.is_granted == 0;
    });
}

void mapped_queue::record_neighbour(std::uint32_t number, std::uint32_t processor) noexcept {
    record& mine = at_->requests[number];
    mine.follower = 0;
    std::atomic<std::uint32_t>& last = at_->last_of_processor[processor];
    const std::uint32_t seen = last.load(std::memory_order_relaxed);
    last.store(number + 1, std::memory_order_relaxed);
    mine.neighbour = seen == number + 1 ? 0 : seen;
    if (mine.blocked == 0 or seen == 0 or seen == number + 1) return;
    record& before = at_->requests[checked(seen - 1, requests_max)];
    mine.neighbour_arrival = before.arrival.load(std::memory_order_relaxed);
    before.follower = number + 1;
}

bool mapped_queue::has_waiter_on_processor(std::uint32_t processor) const noexcept {
    const std::uint32_t last = at_->last_of_processor[processor].load(std::memory_order_relaxed);
    if (last == 0 or last > requests_max) return false;
    const std::uint32_t state = at_->requests[last - 1].state.load(std::memory_order_relaxed);
    return state != mapped::unused and state != mapped::abandoned;
}

bool mapped_queue::has_neighbour(std::uint32_t number) const noexcept {
    const record& mine = at_->requests[number];
    const std::uint32_t neighbour = read_once(mine.neighbour);
    if (neighbour == 0 or neighbour > requests_max) return false;
    const record& before = at_->requests[neighbour - 1];
    // relaxed: a hint; another request may have the record by now.
    return before.arrival.load(std::memory_order_relaxed) == mine.neighbour_arrival and
           before.state.load(std::memory_order_relaxed) != unused;
}

std::optional<mapped_queue::request_key> mapped_queue::enter(const origin& from,
                                                             std::span<const entity> wanted) noexcept {
    const std::size_t needed = (wanted.size() + links_per_request - 1) / links_per_request;
    std::size_t room = requests_max - records_used();
    for (std::uint32_t free = read_once(at_->free_record); free != 0 and room < needed; ++room)
        free = read_once(at_->requests[checked(free - 1, requests_max)].next_record);
    if (room < needed or is_damaged_) return std::nullopt;

    const std::uint32_t first = take_record();
    record& mine = at_->requests[first];
    mine.instance = from.instance;
    mine.blocked = 0;
    mine.owner_died = 0;
    const std::uint64_t arrival = read_once(at_->arrivals) + 1;
    at_->arrivals = arrival;
    mine.arrival.store(arrival, std::memory_order_relaxed);  // its readers do not hold the latch
    mine.since_ns = from.since_ns;
    const bool is_next = fill(first, wanted);
    record_neighbour(first, from.processor);
    if (is_damaged_) return std::nullopt;
    // From here on the request is in use. release: its content is visible if this is.
    const std::uint32_t waits_as = is_next ? next_up : waiting;
    mine.state.store(mine.blocked == 0 ? granted : waits_as, std::memory_order_release);
    return request_key{.number = first, .arrival = arrival};
}

// Queues the links of a request. Returns, if they are not granted, whether those before them are.
bool mapped_queue::fill(std::uint32_t first, std::span<const entity> wanted) noexcept {
    record& mine = at_->requests[first];
    std::uint32_t number = first;
    bool is_next = true;
    for (std::size_t i = 0; i != wanted.size() and not is_damaged_; ++i) {
        const auto index = static_cast<std::uint32_t>(i % links_per_request);
        if (index == 0) {
            if (i != 0) {
                const std::uint32_t further = take_record();
                at_->requests[number].next_record = further + 1;
                number = further;
            }
            at_->requests[number].first_record = first;
            at_->requests[number].next_record = 0;
        }
        at_->requests[number].links_used = index + 1;
        const name fresh = name_of(number, index);
        link& own = link_at(fresh);
        expect(own.is_queued == 0);  // otherwise the record is another request's
        if (queue(fresh, wanted[i].bits())) continue;
        const bool is_granted = own.is_granted != 0;
        mine.blocked += not is_granted;
        mine.owner_died |= own.has_news;
        is_next = is_next and (is_granted or link_at(read_once(own.previous)).is_granted != 0);
    }
    return is_next;
}

bool mapped_queue::has(const request_key& whose, bool knows_grant) const noexcept {
    const record& own = at_->requests[whose.number];
    const std::uint32_t state = own.state.load(std::memory_order_relaxed);
    return own.arrival.load(std::memory_order_relaxed) == whose.arrival and
           (state == granted or (not knows_grant and is_waiting(state)));
}

void mapped_queue::leave(const request_key& whose, bool knows_grant, wake_list& wake) noexcept {
    const std::uint32_t number = whose.number;
    expect(has(whose, knows_grant));
    if (is_damaged_) return;
    // The request is no longer in use. release: so it is if any of the stores below is visible.
    at_->requests[number].state.store(unused, std::memory_order_release);
    const auto leave_link = [&](name each) {
        const link& own = link_at(each);
        // The exclusive holder has repaired the data.
        const name previous = read_once(own.previous);
        if (knows_grant and is_exclusive(own) and previous != 0 and link_at(previous).is_tombstone != 0)
            remove_tombstone(previous);
        dequeue(each, wake);
    };
    // Nearly every request has one record, which needs no walk.
    const bool has_one_record = read_once(at_->requests[number].next_record) == 0;
    if (has_one_record) [[likely]] {
        for_each_link_of(number, leave_link);
        wake_follower(at_->requests[number], wake);
        if (not is_damaged_) free_record(number);
        return;
    }
    for_each_link(number, leave_link);
    wake_follower(at_->requests[number], wake);
    for_each_record(number, [&](std::uint32_t each) { free_record(each); });
}

void mapped_queue::check_waiter(const request_key& whose) noexcept {
    const std::uint32_t state = at_->requests[whose.number].state.load(std::memory_order_relaxed);
    expect(has(whose, false));
    if (is_damaged_ or not is_waiting(state)) return;
    std::uint32_t blocked = 0;
    for_each_link(whose.number, [&](name each) {
        if (link_at(each).is_granted != 0) return;
        ++blocked;
        check_predecessor(each, whose.arrival);
    });
    expect(blocked != 0 and blocked == read_once(at_->requests[whose.number].blocked));
}

void mapped_queue::check_predecessor(name one, std::uint64_t arrival) noexcept {
    const name previous = read_once(link_at(one).previous);
    const link& before = link_at(previous);
    expect(read_once(before.next) == one and before.is_queued != 0 and before.is_tombstone == 0);
    expect(number_of(read_once(before.bits)) == number_of(read_once(link_at(one).bits)));
    const record& earlier = at_->requests[request_of(previous)];
    const std::uint32_t state = earlier.state.load(std::memory_order_relaxed);
    expect(state == granted or is_waiting(state));
    expect(earlier.arrival.load(std::memory_order_relaxed) < arrival);
    const std::uint32_t instance = checked(read_once(earlier.instance), instances_max);
    expect(at_->instances[instance].is_used != 0);
}

bool mapped_queue::is_empty() noexcept {
    bool is_any = false;
    for_each([&](std::uint32_t) { is_any = true; });
    return not is_any;
}

std::size_t mapped_queue::copy_entities(std::uint32_t number, std::vector<entity>& into) noexcept {
    const std::size_t before = into.size();
    const auto copy = [&](std::uint32_t each, bool tombstones_only) {
        const record& one = at_->requests[each];
        const std::uint32_t used = links_used(each);
        expect(into.capacity() - into.size() >= used);
        for (std::uint32_t i = 0; i != used and not is_damaged_; ++i)
            if (not tombstones_only or one.links[i].is_tombstone != 0)
                into.push_back(entity::from_bits(read_once(one.links[i].bits)));
    };
    if (at_->requests[number].state.load(std::memory_order_relaxed) == abandoned)
        copy(number, true);
    else
        for_each_record(number, [&](std::uint32_t each) { copy(each, false); });
    return into.size() - before;
}

// --- the dead

void mapped_queue::reap_link(name of, bool was_granted, wake_list& wake) noexcept {
    link& own = link_at(of);
    if (not was_granted or not is_exclusive(own) or read_once(own.previous) != 0) {
        dequeue(of, wake);  // also after a tombstone: one is enough
        return;
    }
    own.is_tombstone = 1;
    own.is_granted = 0;
    grant_from(read_once(own.next), wake);
}

void mapped_queue::reap_request(std::uint32_t number, wake_list& wake) noexcept {
    const bool was_granted = at_->requests[number].state.load(std::memory_order_relaxed) == granted;
    for_each_link(number, [&](name each) { reap_link(each, was_granted, wake); });
    // Until its first record changes state, the request is in use and its records are the same, so
    // that this starts again if this process dies.
    for_each_record(number, [&](std::uint32_t each) {
        if (each != number and has_tombstones(each))
            at_->requests[each].state.store(abandoned, std::memory_order_release);
    });
    const std::uint32_t end = has_tombstones(number) ? abandoned : unused;
    at_->requests[number].state.store(end, std::memory_order_release);
    for_each_record(number, [&](std::uint32_t each) {
        if (not has_tombstones(each)) free_record(each);
    });
}

void mapped_queue::reap_instance(std::uint32_t instance, wake_list& wake) noexcept {
    for_each([&](std::uint32_t number) {
        const record& one = at_->requests[number];
        if (one.state.load(std::memory_order_relaxed) != abandoned and one.instance == instance)
            reap_request(number, wake);
    });
}

struct mapped_queue::survivors {
    // In order of arrival. Copied, because the order of shared memory may change during the sort.
    std::array<request_key, requests_max> requests;
    std::uint32_t count = 0;
    std::bitset<requests_max> in_use;
};

void mapped_queue::collect(survivors& into) noexcept {
    at_->records_used = records_used();
    for_each([&](std::uint32_t number) {
        const record& one = at_->requests[number];
        const std::uint32_t state = one.state.load(std::memory_order_relaxed);
        if (state == abandoned) return;
        expect(state < abandoned and read_once(one.instance) < instances_max);
        into.requests[into.count++] = {.number = number,
                                       .arrival = one.arrival.load(std::memory_order_relaxed)};
        for_each_record(number, [&](std::uint32_t each) {
            expect(not into.in_use.test(each));
            into.in_use.set(each);
            if (each != number) at_->requests[each].state.store(unused, std::memory_order_relaxed);
        });
    });
    std::sort(into.requests.begin(), into.requests.begin() + into.count,
              [](const request_key& a, const request_key& b) { return a.arrival < b.arrival; });
}

void mapped_queue::queue_tombstones(std::uint32_t number) noexcept {
    record& one = at_->requests[number];
    const std::uint32_t used = links_used(number);
    for (std::uint32_t i = 0; i != used and not is_damaged_; ++i) {
        if (one.links[i].is_tombstone == 0) continue;
        const bool is_first = find_head(read_once(one.links[i].bits)) == 0;
        if (is_first) (void)queue(name_of(number, i), read_once(one.links[i].bits));
        one.links[i].is_granted = 0;
        one.links[i].is_tombstone = is_first;
        one.links[i].is_queued = is_first;
    }
}

void mapped_queue::queue_again(std::uint32_t number, wake_list& wake) noexcept {
    record& one = at_->requests[number];
    const bool was_granted = one.state.load(std::memory_order_relaxed) == granted;
    one.blocked = 0;
    for_each_link(number, [&](name each) {
        (void)queue(each, read_once(link_at(each).bits));
        if (was_granted and link_at(each).is_granted == 0) grant(each);
        one.blocked += link_at(each).is_granted == 0;
        one.owner_died |= link_at(each).has_news;
    });
    if (not was_granted and one.blocked == 0) mark_granted(number, wake);
}

void mapped_queue::rebuild(wake_list& wake) noexcept {
    survivors alive;
    collect(alive);
    std::fill_n(at_->heads, buckets, 0);
    for_each([&](std::uint32_t number) {
        if (alive.in_use.test(number)) return;
        queue_tombstones(number);  // the request is unused now, except for its tombstones
        alive.in_use.set(number, has_tombstones(number));
    });
    for (std::uint32_t i = 0; i != alive.count and not is_damaged_; ++i)
        queue_again(alive.requests[i].number, wake);
    at_->free_record = 0;
    const std::uint32_t used = records_used();
    for (std::uint32_t number = 0; number != used; ++number) {
        if (alive.in_use.test(number)) continue;
        // Its request was incomplete.
        for (link& each : at_->requests[number].links)
            if (each.is_queued != 0) each.is_queued = 0;
        free_record(number);
    }
}

}  // namespace sluice::fsmutex

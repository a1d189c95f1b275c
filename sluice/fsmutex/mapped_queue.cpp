#include "sluice/fsmutex/mapped_queue.hpp"

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
    // Multiplicative hashing (Knuth): users may count their entities, and the low bits of a product mix
    // badly.
    return at_->heads[(number_of(bits) * 0x9e37'79b9'7f4a'7c15) >> 52];
}
static_assert(buckets == 1U << (64 - 52));

mapped_queue::name mapped_queue::find_head(std::uint64_t bits) const noexcept {
    name head = bucket_of(bits);
    while (head != 0 and number_of(link_at(head).bits) != number_of(bits))
        head = link_at(head).bucket_next;
    return head;
}

template <class Visit>
void mapped_queue::for_each_record(std::uint32_t first, Visit&& visit) const noexcept {
    for (std::uint32_t rest = first + 1; rest != 0;) {
        const std::uint32_t number = rest - 1;
        rest = at_->requests[number].next_record;  // before `visit` frees it
        visit(number);
    }
}
template <class Visit>
void mapped_queue::for_each_link(std::uint32_t first, Visit&& visit) const noexcept {
    for_each_record(first, [&](std::uint32_t number) {
        for (std::uint32_t i = 0; i != at_->requests[number].links_used; ++i)
            visit(name_of(number, i));
    });
}

// --- records

std::uint32_t mapped_queue::take_record() noexcept {
    if (at_->free_record == 0) return at_->records_used++;
    const std::uint32_t number = at_->free_record - 1;
    at_->free_record = at_->requests[number].next_record;
    return number;
}

void mapped_queue::free_record(std::uint32_t number) noexcept {
    record& freed = at_->requests[number];
    // release: what follows must not be seen before it, should we die in between.
    freed.state.store(unused, std::memory_order_release);
    freed.next_record = at_->free_record;
    at_->free_record = number + 1;
}

bool mapped_queue::has_tombstones(const record& one) const noexcept {
    return std::any_of(one.links, one.links + one.links_used,
                       [](const link& each) { return each.is_tombstone != 0; });
}

// --- queues

bool mapped_queue::may_be_granted(const link& one) const noexcept {
    if (one.previous == 0) return true;
    const link& before = link_at(one.previous);
    if (before.is_tombstone != 0) return true;
    return not is_exclusive(one) and not is_exclusive(before) and before.is_granted != 0;
}

void mapped_queue::grant(name one) noexcept {
    link& granted_link = link_at(one);
    granted_link.is_granted = 1;
    if (granted_link.previous == 0) return;
    const link& before = link_at(granted_link.previous);
    granted_link.has_news = before.is_tombstone != 0 or before.has_news != 0;
}

void mapped_queue::queue(name fresh) noexcept {
    link& own = link_at(fresh);
    const std::uint64_t bits = own.bits;
    own = {};
    own.bits = bits;
    own.tail = fresh;
    own.is_queued = 1;
    if (const name head = find_head(own.bits); head == 0) {
        std::uint32_t& bucket = bucket_of(own.bits);
        own.bucket_next = bucket;
        bucket = fresh;
    } else {
        own.previous = link_at(head).tail;
        link_at(own.previous).next = fresh;
        link_at(head).tail = fresh;
    }
    if (may_be_granted(own)) grant(fresh);
}

// Puts the next link, or nothing, in the place of the first.
void mapped_queue::unlink_head(name head, name successor) noexcept {
    const link& leaving = link_at(head);
    name replacement = leaving.bucket_next;
    if (successor != 0) {
        link& next = link_at(successor);
        next.previous = 0;
        next.tail = leaving.tail;
        next.bucket_next = leaving.bucket_next;
        replacement = successor;
    }
    std::uint32_t* pointer = &bucket_of(leaving.bits);
    while (*pointer != head)
        pointer = &link_at(*pointer).bucket_next;
    *pointer = replacement;
}

void mapped_queue::dequeue(name leaving, wake_list& wake) noexcept {
    link& own = link_at(leaving);
    const name next = own.next;
    if (own.previous == 0) {
        unlink_head(leaving, next);
    } else {
        link_at(own.previous).next = next;
        if (next != 0)
            link_at(next).previous = own.previous;
        else
            link_at(find_head(own.bits)).tail = own.previous;
    }
    own.is_queued = 0;
    settle(next, wake);
}

void mapped_queue::settle(name first, wake_list& wake) noexcept {
    for (name one = first; one != 0 and link_at(one).is_granted == 0 and may_be_granted(link_at(one));
         one = link_at(one).next) {
        grant(one);
        record& of = at_->requests[at_->requests[(one - 1) / links_per_request].first_record];
        of.owner_died |= link_at(one).has_news;
        if (--of.blocked == 0) tell_granted(at_->requests[(one - 1) / links_per_request].first_record, wake);
    }
}

void mapped_queue::tell_granted(std::uint32_t number, wake_list& wake) noexcept {
    // release: pairs with the acquire of the owner's poll; the previous holder's writes come before.
    if (at_->requests[number].state.exchange(granted, std::memory_order_acq_rel) == asleep) wake.add(number);
    rouse_next(link_at(name_of(number, 0)).next, wake);
}

// To wake somebody takes longer than most hold a lock. So who comes next is woken one turn ahead.
void mapped_queue::rouse_next(name behind, wake_list& wake) noexcept {
    if (behind != 0) rouse(at_->requests[(behind - 1) / links_per_request].first_record, wake);
}

// Whose turn it is next on this processor: to wake him takes no interrupt of another processor.
void mapped_queue::rouse_follower(const record& leaving, wake_list& wake) noexcept {
    if (leaving.follower == 0) return;
    const record& follower = at_->requests[leaving.follower - 1];
    if (follower.neighbour != 0 and &at_->requests[follower.neighbour - 1] == &leaving and
        follower.neighbour_arrival == leaving.arrival.load(std::memory_order_relaxed))
        rouse(leaving.follower - 1, wake);
}

void mapped_queue::rouse(std::uint32_t number, wake_list& wake) noexcept {
    std::uint32_t seen = asleep;
    // relaxed: it tells nothing but that it is worth looking.
    if (at_->requests[number].state.compare_exchange_strong(seen, next_up, std::memory_order_relaxed))
        wake.add(number);
    else if (seen == waiting)
        (void)at_->requests[number].state.compare_exchange_strong(seen, next_up, std::memory_order_relaxed);
}

void mapped_queue::remove_tombstone(name of) noexcept {
    wake_list nobody;  // who stands behind a tombstone does not wait for it
    dequeue(of, nobody);
    link_at(of).is_tombstone = 0;
    const std::uint32_t number = (of - 1) / links_per_request;
    if (not has_tombstones(at_->requests[number])) free_record(number);
}

// --- requests

bool mapped_queue::is_contended(std::span<const entity> wanted) const noexcept {
    return std::any_of(wanted.begin(), wanted.end(), [&](entity each) {
        const name head = find_head(each.bits());
        if (head == 0) return false;
        const link& last = link_at(link_at(head).tail);
        if (last.is_tombstone != 0) return false;
        return each.is_exclusive() or is_exclusive(last) or last.is_granted == 0;
    });
}

void mapped_queue::note_neighbour(std::uint32_t number, std::uint32_t processor) noexcept {
    record& mine = at_->requests[number];
    mine.follower = 0;
    std::atomic<std::uint32_t>& last = at_->last_of_processor[processor];
    mine.neighbour = last.load(std::memory_order_relaxed);
    last.store(number + 1, std::memory_order_relaxed);
    if (mine.neighbour == number + 1) mine.neighbour = 0;
    if (mine.blocked == 0 or mine.neighbour == 0) return;
    record& before = at_->requests[mine.neighbour - 1];
    mine.neighbour_arrival = before.arrival.load(std::memory_order_relaxed);
    before.follower = number + 1;
}

bool mapped_queue::has_asker_of(std::uint32_t processor) const noexcept {
    const std::uint32_t last = at_->last_of_processor[processor].load(std::memory_order_relaxed);
    if (last == 0) return false;
    const std::uint32_t state = at_->requests[last - 1].state.load(std::memory_order_relaxed);
    return state != mapped::unused and state != mapped::abandoned;
}

bool mapped_queue::has_neighbour(std::uint32_t number) const noexcept {
    const record& mine = at_->requests[number];
    if (mine.neighbour == 0) return false;
    const record& before = at_->requests[mine.neighbour - 1];
    // relaxed: it orders nothing; the place may be another's by now.
    return before.arrival.load(std::memory_order_relaxed) == mine.neighbour_arrival and
           before.state.load(std::memory_order_relaxed) != unused;
}

std::optional<std::uint32_t> mapped_queue::enter(const origin& from,
                                                 std::span<const entity> wanted) noexcept {
    const std::size_t needed = (wanted.size() + links_per_request - 1) / links_per_request;
    std::size_t room = requests_max - at_->records_used;
    for (std::uint32_t free = at_->free_record; free != 0 and room < needed; ++room)
        free = at_->requests[free - 1].next_record;
    if (room < needed) return std::nullopt;

    const std::uint32_t first = take_record();
    record& mine = at_->requests[first];
    mine.instance = from.instance;
    mine.blocked = 0;
    mine.owner_died = 0;
    mine.arrival.store(++at_->arrivals, std::memory_order_relaxed);  // others look at it without the latch
    mine.since_ns = from.since_ns;
    std::uint32_t number = first;
    bool is_next = true;
    for (std::size_t i = 0; i != wanted.size(); ++i) {
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
        link_at(fresh).bits = wanted[i].bits();
        queue(fresh);
        const link& own = link_at(fresh);
        mine.blocked += own.is_granted == 0;
        mine.owner_died |= own.has_news;
        is_next = is_next and (own.is_granted != 0 or link_at(own.previous).is_granted != 0);
    }
    note_neighbour(first, from.processor);
    // From here on it counts. release: what it consists of is there if it does.
    const std::uint32_t waits_as = is_next ? next_up : waiting;
    mine.state.store(mine.blocked == 0 ? granted : waits_as, std::memory_order_release);
    return first;
}

void mapped_queue::leave(std::uint32_t number, bool was_told, wake_list& wake) noexcept {
    // It counts no more. release: so it is if any of what follows happened.
    at_->requests[number].state.store(unused, std::memory_order_release);
    for_each_link(number, [&](name each) {
        const link& own = link_at(each);
        // He who was alone with it has repaired it.
        if (was_told and is_exclusive(own) and own.previous != 0 and link_at(own.previous).is_tombstone != 0)
            remove_tombstone(own.previous);
        dequeue(each, wake);
    });
    rouse_follower(at_->requests[number], wake);
    for_each_record(number, [&](std::uint32_t each) { free_record(each); });
}

bool mapped_queue::is_empty() const noexcept {
    bool is_any = false;
    for_each([&](std::uint32_t) { is_any = true; });
    return not is_any;
}

std::size_t mapped_queue::copy_entities(std::uint32_t number, std::vector<entity>& into) const noexcept {
    const std::size_t before = into.size();
    const auto copy = [&](std::uint32_t each, bool tombstones_only) {
        const record& one = at_->requests[each];
        for (std::uint32_t i = 0; i != one.links_used; ++i)
            if (not tombstones_only or one.links[i].is_tombstone != 0)
                into.push_back(entity::from_bits(one.links[i].bits));
    };
    if (at_->requests[number].state.load(std::memory_order_relaxed) == abandoned)
        copy(number, true);
    else
        for_each_record(number, [&](std::uint32_t each) { copy(each, false); });
    return into.size() - before;
}

// --- the dead

void mapped_queue::bury_link(name of, bool was_granted, wake_list& wake) noexcept {
    link& own = link_at(of);
    if (not was_granted or not is_exclusive(own) or own.previous != 0) {
        dequeue(of, wake);  // behind a tombstone, too: one is enough
        return;
    }
    own.is_tombstone = 1;
    own.is_granted = 0;
    settle(own.next, wake);
}

void mapped_queue::bury_request(std::uint32_t number, wake_list& wake) noexcept {
    const bool was_granted = at_->requests[number].state.load(std::memory_order_relaxed) == granted;
    for_each_link(number, [&](name each) { bury_link(each, was_granted, wake); });
    // Until here it counts as it did, so that this is begun again should we die. Its first record comes last.
    const auto end_record = [&](std::uint32_t each) {
        if (has_tombstones(at_->requests[each]))
            at_->requests[each].state.store(abandoned, std::memory_order_release);
        else
            free_record(each);
    };
    for_each_record(number, [&](std::uint32_t each) {
        if (each != number) end_record(each);
    });
    end_record(number);
}

void mapped_queue::bury(std::uint32_t instance, wake_list& wake) noexcept {
    for_each([&](std::uint32_t number) {
        const record& one = at_->requests[number];
        if (one.state.load(std::memory_order_relaxed) != abandoned and one.instance == instance)
            bury_request(number, wake);
    });
}

struct mapped_queue::survivors {
    std::array<std::uint32_t, requests_max> requests;  // first records, in order of arrival
    std::uint32_t count = 0;
    std::bitset<requests_max> in_use;
};

void mapped_queue::collect(survivors& into) noexcept {
    at_->records_used = std::min(at_->records_used, requests_max);
    for_each([&](std::uint32_t number) {
        if (at_->requests[number].state.load(std::memory_order_relaxed) == abandoned) return;
        into.requests[into.count++] = number;
        for_each_record(number, [&](std::uint32_t each) {
            into.in_use.set(each);
            if (each != number) at_->requests[each].state.store(unused, std::memory_order_relaxed);
        });
    });
    std::sort(into.requests.begin(), into.requests.begin() + into.count,
              [&](std::uint32_t a, std::uint32_t b) {
                  return at_->requests[a].arrival.load(std::memory_order_relaxed) <
                         at_->requests[b].arrival.load(std::memory_order_relaxed);
              });
}

void mapped_queue::queue_tombstones(std::uint32_t number) noexcept {
    record& one = at_->requests[number];
    for (std::uint32_t i = 0; i != one.links_used; ++i) {
        if (one.links[i].is_tombstone == 0) continue;
        const bool is_first = find_head(one.links[i].bits) == 0;
        if (is_first) queue(name_of(number, i));
        one.links[i].is_granted = 0;
        one.links[i].is_tombstone = is_first;
    }
}

void mapped_queue::queue_again(std::uint32_t number, wake_list& wake) noexcept {
    record& one = at_->requests[number];
    const bool was_granted = one.state.load(std::memory_order_relaxed) == granted;
    one.blocked = 0;
    for_each_link(number, [&](name each) {
        queue(each);
        if (was_granted and link_at(each).is_granted == 0) grant(each);
        one.blocked += link_at(each).is_granted == 0;
        one.owner_died |= link_at(each).has_news;
    });
    if (not was_granted and one.blocked == 0) tell_granted(number, wake);
}

void mapped_queue::rebuild(wake_list& wake) noexcept {
    survivors alive;
    collect(alive);
    std::fill_n(at_->heads, buckets, 0);
    for_each([&](std::uint32_t number) {
        if (alive.in_use.test(number)) return;
        queue_tombstones(number);  // of a request, by now nothing but tombstones counts
        alive.in_use.set(number, has_tombstones(at_->requests[number]));
    });
    for (std::uint32_t i = 0; i != alive.count; ++i)
        queue_again(alive.requests[i], wake);
    at_->free_record = 0;
    for (std::uint32_t number = 0; number != at_->records_used; ++number)
        if (not alive.in_use.test(number)) free_record(number);
}

}  // namespace sluice::fsmutex

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/fsmutex/entity.hpp"

// Internal to fsmutex: the queue of memory_map, as it is stored in the mapped file. Memory only, no system
// call.
//
// A process that can write the file can change any byte at any moment. So everything that is read is
// untrusted.

namespace sluice::fsmutex {

namespace mapped {

inline constexpr std::uint32_t instances_max = 1024;
inline constexpr std::uint32_t requests_max = 4096;
inline constexpr std::uint32_t buckets = 4096;
inline constexpr std::uint32_t links_per_request = 8;
inline constexpr std::uint32_t links_max = requests_max * links_per_request;
inline constexpr std::uint32_t processors = 256;
inline constexpr std::uint64_t version_1 = 0x3150'616d'6563'6c73;  // "slcemaP1"

/// What a request is doing. A futex word: its owner sleeps while it is `asleep`.
enum : std::uint32_t {
    unused,     // free, or being put together or taken apart by who has the latch
    waiting,    //
    next_up,    // waiting, and right behind somebody who holds: it is worth staying awake for a moment
    asleep,     // waiting, and must be woken
    granted,    //
    abandoned,  // its owner died: what it held exclusively is news for the next
};

[[nodiscard]] constexpr bool is_waiting(std::uint32_t state) noexcept {
    return state == waiting or state == next_up or state == asleep;
}

/// One entity of one request. Links are named by their number plus one; zero is none.
///
/// Those of one entity form a queue in order of arrival. Its head hangs in the bucket of the entity.
struct link {
    std::uint64_t bits;         // the entity
    std::uint32_t next;         // in the queue
    std::uint32_t previous;     // in the queue
    std::uint32_t bucket_next;  // of a head: the head of another entity
    std::uint32_t tail;         // of a head: the last of the queue
    std::uint8_t is_granted;
    std::uint8_t is_tombstone;  // not a lock, only the news of a death; always a head
    std::uint8_t has_news;      // is told of a death when granted
    std::uint8_t is_queued;
    std::uint32_t unused;
};
static_assert(sizeof(link) == 32);

/// A request, or the next eight entities of one.
struct request {
    std::atomic<std::uint32_t> state;  // of its first record; that of the others is `unused`, or `abandoned`
    std::uint32_t instance;            // whose it is
    std::uint32_t next_record;         // of the same request, plus one; of a free record: the next free one
    std::uint32_t blocked;             // links not granted, over all records
    std::uint32_t links_used;
    std::uint32_t owner_died;
    std::atomic<std::uint64_t> arrival;
    std::uint64_t since_ns;      // of the date
    std::uint32_t first_record;  // of the same request
    // Of one that waits, and nothing but hints: who asked before it, and after it, on its processor.
    std::uint32_t neighbour;  // plus one
    std::uint64_t neighbour_arrival;
    std::uint32_t follower;  // plus one
    std::uint32_t reserved;
    link links[links_per_request];
};
static_assert(sizeof(request) == 320);

/// Somebody who has the file open; alive as long as byte `first_instance_byte` + its index is locked.
struct instance {
    std::uint32_t is_used;
    std::uint32_t process_id;
    std::uint64_t start_time;
    std::uint64_t namespaces;
    std::atomic<std::uint32_t>
        generation;  // tells it from who had the place before; written by who locks its byte
    std::uint32_t reserved;
};
static_assert(sizeof(instance) == 32);

struct memory {
    std::uint64_t version;
    std::array<char, 40> boot_id;
    std::array<char, 16> reserved;
    alignas(
        64) std::atomic<std::uint32_t> latch;  // of whom: see mapped_file; top bit: somebody sleeps for it
    alignas(64) std::uint64_t arrivals;
    std::uint32_t free_record;   // plus one
    std::uint32_t records_used;  // those behind have never been
    std::uint32_t is_damaged;    // a user has found content that no user writes: it is not used any more
    std::array<std::atomic<std::uint32_t>, processors> last_of_processor;  // who asked, plus one; hints
    alignas(4096) instance instances[instances_max];
    std::uint32_t heads[buckets];
    request requests[requests_max];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free and sizeof(std::atomic<std::uint32_t>) == 4);

/// Reads memory that another program may change at any moment, by one load: so the value that is checked is
/// the value that is used. (Otherwise the compiler may load it again.)
template <class T>
[[nodiscard]] T read_once(const T& from) noexcept {
    return *static_cast<const volatile T*>(&from);
}

}  // namespace mapped

/// The operations on the queue; whoever calls one has the latch, but where it says otherwise.
///
/// Invariants, while nobody has the latch:
///   1. a link of a request is granted if nothing conflicting stands before it in its entity's queue;
///   2. `blocked` of a request is how many of its links are not; at zero it is granted;
///   3. all links of a request were queued under one latch, so all queues have requests in one order.
/// What the requests themselves say (state, arrival, entities) is the truth, and rebuild() makes everything
/// else from it: so a process may die anywhere. A record is filled before its state says that it counts, and
/// its state says that it does not before it is taken apart. Complexity: of enter and leave O(entities),
/// whatever the length of the queues.
///
/// Untrusted content:
///   4. every name, number and count is read once, and checked before it is an index;
///   5. a walk along links takes at most as many steps as there are links, and one over the records of a
///   request
///      stays in records that name this request: so a circle ends it;
///   6. content that contradicts the invariants sets is_damaged() and ends the operation, which may leave the
///      queues half changed. The result of the operation means nothing then.
/// One object is for one operation, or several of one thread.
class mapped_queue {
public:
    explicit mapped_queue(mapped::memory& where) noexcept : at_(&where) {}

    /// Whether an operation has found content that cannot be.
    [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }

    /// Requests to wake after the latch is released: those granted, and those that will be next.
    class wake_list {
    public:
        [[nodiscard]] std::span<const std::uint32_t> all() const noexcept {
            return {numbers_.data(), count_};
        }
        /// Whether there are more than it has room for. Then all that are granted, or will be next, are to
        /// be woken.
        [[nodiscard]] bool has_more() const noexcept { return has_more_; }
        void add(std::uint32_t number) noexcept {
            if (count_ != numbers_.size())
                numbers_[count_++] = number;
            else
                has_more_ = true;
        }

        /// Less than a page: for a larger one, the compiler touches each page of the stack in every call.
        static constexpr std::size_t room = 900;

    private:
        std::uint32_t count_ = 0;  // before them: on the same page as the first of them
        bool has_more_ = false;
        std::array<std::uint32_t, room> numbers_;
    };

    /// Whose request it is, where it was asked for, and when.
    struct origin {
        std::uint32_t instance;
        std::uint32_t processor = 0;  // below mapped::processors
        std::uint64_t since_ns = 0;
    };
    /// Identifies a request to its owner: no other request has had this arrival.
    struct request_key {
        std::uint32_t number;
        std::uint64_t arrival;
    };
    /// Queues a request. Returns std::nullopt if there is no room for it.
    [[nodiscard]] std::optional<request_key> enter(const origin& from,
                                                   std::span<const entity> wanted) noexcept;
    /// Whether a request would have to wait.
    [[nodiscard]] bool is_contended(std::span<const entity> wanted) noexcept;
    /// Takes a request out, whether it was granted or not. `was_told`: its owner knows that it was, and of
    /// the deaths that came with it; otherwise they stay news. Damaged if the request is not there.
    void leave(const request_key& whose, bool was_told, wake_list& wake) noexcept;
    /// Takes out all of an instance that died; what it held exclusively leaves a tombstone.
    void bury(std::uint32_t instance, wake_list& wake) noexcept;
    /// Makes the queues anew, after somebody died with the latch.
    void rebuild(wake_list& wake) noexcept;
    /// Checks that an earlier request will grant this one if it waits: without that, it would wait without
    /// end. The link before each of its links names it, arrived earlier, and belongs to a request that counts
    /// and to an instance in use. So one of the requests in a circle of links finds the circle.
    void check_waiter(const request_key& whose) noexcept;
    [[nodiscard]] bool is_empty() noexcept;
    /// Those of a request that counts, appended to `into`, which has room for all links; how many.
    [[nodiscard]] std::size_t copy_entities(std::uint32_t number, std::vector<entity>& into) noexcept;

    /// Returns whether it is still there, and granted if `was_told`. For its owner, who needs no latch.
    [[nodiscard]] bool has(const request_key& whose, bool was_told) const noexcept;
    /// Without the latch, for its owner.
    [[nodiscard]] mapped::request& request_at(std::uint32_t number) const noexcept {
        return at_->requests[number];
    }
    /// Without the latch, for its owner: whether he who asked before it on its processor has not left yet.
    [[nodiscard]] bool has_neighbour(std::uint32_t number) const noexcept;
    /// Without the latch, and a hint: whether he who asked last on that processor has not left yet.
    [[nodiscard]] bool has_asker_of(std::uint32_t processor) const noexcept;
    /// Calls `visit(record, is_first)` for every record that counts.
    template <class Visit>
    void for_each(Visit&& visit) {
        const std::uint32_t used = records_used();
        for (std::uint32_t i = 0; i != used and not is_damaged_; ++i)
            if (at_->requests[i].state.load(std::memory_order_relaxed) != mapped::unused) visit(i);
    }

private:
    using link = mapped::link;
    using record = mapped::request;
    using name = std::uint32_t;  // of a link: number plus one

    // Returns any number for one that is damaged, so that it can be used without harm.
    [[nodiscard]] std::uint32_t checked(std::uint32_t number, std::uint32_t end) noexcept {
        if (number < end) [[likely]]
            return number;
        is_damaged_ = true;
        return 0;
    }
    [[nodiscard]] link& link_at(name of) noexcept {
        const std::uint32_t index = checked(of - 1, mapped::links_max);  // none is the largest number
        return at_->requests[index / mapped::links_per_request].links[index % mapped::links_per_request];
    }
    void expect(bool holds) noexcept {
        if (not holds) [[unlikely]]
            is_damaged_ = true;
    }
    [[nodiscard]] bool may_go_on(std::uint32_t& steps) noexcept {
        expect(steps++ != mapped::links_max);
        return not is_damaged_;
    }
    [[nodiscard]] std::uint32_t records_used() noexcept;
    [[nodiscard]] std::uint32_t links_used(std::uint32_t number) noexcept;
    [[nodiscard]] std::uint32_t request_of(name one) noexcept;
    void check_predecessor(name one, std::uint64_t arrival) noexcept;
    [[nodiscard]] static name name_of(std::uint32_t number, std::uint32_t index) noexcept {
        return number * mapped::links_per_request + index + 1;
    }
    [[nodiscard]] std::uint32_t& bucket_of(std::uint64_t bits) const noexcept;
    [[nodiscard]] name find_head(std::uint64_t bits) noexcept;
    [[nodiscard]] bool may_be_granted(const link& one) noexcept;
    [[nodiscard]] static bool is_exclusive(const link& one) noexcept {
        return (one.bits & entity::exclusive_bit) != 0;
    }

    [[nodiscard]] std::uint32_t take_record() noexcept;
    void free_record(std::uint32_t number) noexcept;
    [[nodiscard]] bool has_tombstones(std::uint32_t number) noexcept;
    void unlink_head(name head, name successor) noexcept;
    template <class Visit>
    void for_each_record(std::uint32_t first, Visit&& visit) noexcept;
    // Inlined by force, like fill() and queue(): docs/benchmarks/fs_mutex.md has the effect.
    template <class Visit>
    [[gnu::always_inline]] void for_each_link_of(std::uint32_t number, Visit&& visit) noexcept;
    template <class Visit>
    void for_each_link(std::uint32_t first, Visit&& visit) noexcept;
    [[nodiscard, gnu::always_inline]] bool fill(std::uint32_t first, std::span<const entity> wanted) noexcept;
    struct survivors;
    void collect(survivors& into) noexcept;
    void queue_tombstones(std::uint32_t number) noexcept;
    void queue_again(std::uint32_t number, wake_list& wake) noexcept;
    // Whether it is the first of its queue, and so granted.
    [[nodiscard, gnu::always_inline]] bool queue(name fresh, std::uint64_t bits) noexcept;
    void grant(name one) noexcept;
    void dequeue(name leaving, wake_list& wake) noexcept;
    void settle(name first, wake_list& wake) noexcept;
    void tell_granted(std::uint32_t number, wake_list& wake) noexcept;
    void rouse(std::uint32_t number, wake_list& wake) noexcept;
    void rouse_next(name behind, wake_list& wake) noexcept;
    void rouse_follower(const record& leaving, wake_list& wake) noexcept;
    void note_neighbour(std::uint32_t number, std::uint32_t processor) noexcept;
    void remove_tombstone(name of) noexcept;
    void bury_request(std::uint32_t number, wake_list& wake) noexcept;
    void bury_link(name of, bool was_granted, wake_list& wake) noexcept;

    mapped::memory* at_;
    bool is_damaged_ = false;
};

}  // namespace sluice::fsmutex

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/fsmutex/entity.hpp"

// Internal to fsmutex: the queue of memory_map, as it is stored in the mapped file. No system
// calls.
//
// A process that can write the file can change any byte at any moment. So all content is untrusted.

namespace sluice::fsmutex {

namespace mapped {

inline constexpr std::uint32_t instances_max = 1024;
inline constexpr std::uint32_t requests_max = 4096;
inline constexpr std::uint32_t buckets = 4096;
inline constexpr std::uint32_t links_per_request = 8;
inline constexpr std::uint32_t links_max = requests_max * links_per_request;
inline constexpr std::uint32_t processors = 256;
inline constexpr std::uint64_t version_1 = 0x3150'616d'6563'6c73;  // "slcemaP1"

/// The state of a request, a futex word: its owner sleeps while it is `asleep`.
enum : std::uint32_t {
    unused,     // free, or being filled or cleared by the holder of the latch
    waiting,    //
    next_up,    // waiting directly after a holder: stay awake for a moment
    asleep,     // waiting, and must be woken
    granted,    //
    abandoned,  // its owner died: its exclusive locks are reported to the next holder
};

[[nodiscard]] constexpr bool is_waiting(std::uint32_t state) noexcept {
    return state == waiting or state == next_up or state == asleep;
}

/// One entity of one request. Links are named by their number plus one; zero means none.
///
/// The links of one entity form a queue in order of arrival. Its head is in the bucket of the
/// entity.
struct link {
    std::uint64_t bits;         // the entity
    std::uint32_t next;         // in the queue
    std::uint32_t previous;     // in the queue
    std::uint32_t bucket_next;  // in a head: the head of another entity
    std::uint32_t tail;         // in a head: the last of the queue
    std::uint8_t is_granted;
    std::uint8_t is_tombstone;  // not a lock, only the record of a death; always a head
    std::uint8_t has_news;      // a death is reported when granted
    std::uint8_t is_queued;
    std::uint32_t unused;
};
static_assert(sizeof(link) == 32);

/// A request, or the next eight entities of one.
struct request {
    std::atomic<std::uint32_t> state;  // in the first record; the other records are
                                       // `unused` or `abandoned`
    std::uint32_t instance;            // its owner
    std::uint32_t next_record;         // the next of this request, plus one; or
                                       // the next free record
    std::uint32_t blocked;             // links not granted, over all records
    std::uint32_t links_used;
    std::uint32_t owner_died;
    std::atomic<std::uint64_t> arrival;
    std::uint64_t since_ns;      // as a date
    std::uint32_t first_record;  // in this request
    // Hints of a waiting request: the previous and the next request on its CPU.
    std::uint32_t neighbour;  // plus one
    std::uint64_t neighbour_arrival;
    std::uint32_t follower;  // plus one
    std::uint32_t reserved;
    link links[links_per_request];
};
static_assert(sizeof(request) == 320);

/// A process that has the file open. It is alive as long as byte `first_instance_byte` + its index
/// is locked.
struct instance {
    std::uint32_t is_used;
    std::uint32_t process_id;
    std::uint64_t start_time;
    std::uint64_t namespaces;
    std::atomic<std::uint32_t>
        generation;  // distinguishes instances of one slot; written by the holder of its byte
    std::uint32_t reserved;
};
static_assert(sizeof(instance) == 32);

struct memory {
    std::uint64_t version;
    std::array<char, 40> boot_id;
    std::array<char, 16> reserved;
    // Its holder: see mapped_file; top bit: a thread sleeps for it.
    alignas(64) std::atomic<std::uint32_t> latch;
    alignas(64) std::uint64_t arrivals;
    std::uint32_t free_record;   // plus one
    std::uint32_t records_used;  // later records were never used
    std::uint32_t is_damaged;    // a user has found invalid content: the file is not used any more
    // Requests plus one; hints.
    std::array<std::atomic<std::uint32_t>, processors> last_of_processor;
    alignas(4096) instance instances[instances_max];
    std::uint32_t heads[buckets];
    request requests[requests_max];
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free and sizeof(std::atomic<std::uint32_t>) == 4);

/// Reads memory that another program may change at any moment, by one load: so the checked value is
/// the value used. (Otherwise the compiler may load it again.)
template <class T>
[[nodiscard]] T read_once(const T& from) noexcept {
    return *static_cast<const volatile T*>(&from);
}

}  // namespace mapped

/// The operations on the queue. Unless stated otherwise, the caller holds the latch.
///
/// Invariants, while the latch is free:
///   1. a link of a request is granted if no conflicting link is before it in its entity's queue;
///   2. `blocked` of a request is the number of its links that are not granted; at zero it is
///      granted;
///   3. all links of a request were queued under one latch, so all queues have requests in one
///      order.
/// The requests themselves (state, arrival, entities) are authoritative, and rebuild() derives
/// everything else from them: so a process may die at any instruction. A record is filled before
/// its state marks it as used, and its state marks it as unused before it is cleared. Complexity:
/// enter and leave are O(entities), whatever the length of the queues.
///
/// Untrusted content:
///   4. every name, number and count is read once, and checked before it is an index;
///   5. a walk along links takes at most as many steps as there are links, and one over the records
///      of a request stays in records that name this request: so it ends even in a circle;
///   6. content that contradicts the invariants sets is_damaged() and ends the operation, which may
///      leave the queues half changed. The result of the operation is then meaningless.
/// One object serves one operation, or several of one thread.
class mapped_queue {
public:
    explicit mapped_queue(mapped::memory& where) noexcept : at_(&where) {}

    /// Returns whether an operation has found invalid content.
    [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }

    /// The requests to wake after the latch is released: those granted, and those that will be
    /// next.
    class wake_list {
    public:
        [[nodiscard]] std::span<const std::uint32_t> all() const noexcept {
            return {numbers_.data(), count_};
        }
        /// Returns whether there are more requests than the list can hold. Then the caller must
        /// wake all requests that are granted or will be next.
        [[nodiscard]] bool has_more() const noexcept { return has_more_; }
        void add(std::uint32_t number) noexcept {
            if (count_ != numbers_.size())
                numbers_[count_++] = number;
            else
                has_more_ = true;
        }

        /// Less than a page: for a larger one, the compiler touches each page of the
        /// stack in every call.
        static constexpr std::size_t room = 900;

    private:
        std::uint32_t count_ = 0;  // before them: on the same page as the first of them
        bool has_more_ = false;
        std::array<std::uint32_t, room> numbers_;
    };

    /// The owner of a request, the CPU on which it was made, and the time.
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
    /// Queues a request. Returns std::nullopt if the queue is full.
    [[nodiscard]] std::optional<request_key> enter(const origin& from,
                                                   std::span<const entity> wanted) noexcept;
    /// Returns whether a request would have to wait.
    [[nodiscard]] bool is_contended(std::span<const entity> wanted) noexcept;
    /// Removes a request, whether it was granted or not. `knows_grant` states that its owner knows
    /// that it was granted, and knows the reported deaths; otherwise the next holder gets the
    /// report. Sets is_damaged() if the request is not in the queue.
    void leave(const request_key& whose, bool knows_grant, wake_list& wake) noexcept;
    /// Removes all requests of an instance that died; its exclusive locks leave tombstones.
    void reap_instance(std::uint32_t instance, wake_list& wake) noexcept;
    /// Rebuilds the queues after the holder of the latch died.
    void rebuild(wake_list& wake) noexcept;
    /// Checks that an earlier request will grant this one if it waits: otherwise it would wait
    /// without end. The link before each of its links names it, arrived earlier, and belongs to a
    /// used request and to an instance in use. So one of the requests in a circle of links finds
    /// the circle.
    void check_waiter(const request_key& whose) noexcept;
    [[nodiscard]] bool is_empty() noexcept;
    /// Appends the entities of a used request to `into`, which has capacity for all links. Returns
    /// their number.
    [[nodiscard]] std::size_t copy_entities(std::uint32_t number, std::vector<entity>& into) noexcept;

    /// Returns whether the request is still queued, and granted if `knows_grant`. For its owner,
    /// which needs no latch.
    [[nodiscard]] bool has(const request_key& whose, bool knows_grant) const noexcept;
    /// Returns a request. For its owner, which needs no latch.
    [[nodiscard]] mapped::request& request_at(std::uint32_t number) const noexcept {
        return at_->requests[number];
    }
    /// Returns whether the previous request on the same CPU is still queued. For its owner, which
    /// needs no latch.
    [[nodiscard]] bool has_neighbour(std::uint32_t number) const noexcept;
    /// Returns whether the last request on that CPU is still queued: a hint, for callers that do
    /// not hold the latch.
    [[nodiscard]] bool has_waiter_on_processor(std::uint32_t processor) const noexcept;
    /// Calls `visit(record, is_first)` for every used record.
    template <class Visit>
    void for_each(Visit&& visit) {
        const std::uint32_t used = records_used();
        for (std::uint32_t i = 0; i != used and not is_damaged_; ++i)
            if (at_->requests[i].state.load(std::memory_order_relaxed) != mapped::unused) visit(i);
    }

private:
    using link = mapped::link;
    using record = mapped::request;
    using name = std::uint32_t;  // number of a link plus one

    // Returns any valid number for an invalid one, so that the caller can use it safely.
    [[nodiscard]] std::uint32_t checked(std::uint32_t number, std::uint32_t end) noexcept {
        if (number < end) [[likely]]
            return number;
        is_damaged_ = true;
        return 0;
    }
    [[nodiscard]] link& link_at(name of) noexcept {
        // Zero becomes the largest number.
        const std::uint32_t index = checked(of - 1, mapped::links_max);
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
    // Force-inlined, like fill() and queue(): docs/benchmarks/fs_mutex.md has the effect.
    template <class Visit>
    [[gnu::always_inline]] void for_each_link_of(std::uint32_t number, Visit&& visit) noexcept;
    template <class Visit>
    void for_each_link(std::uint32_t first, Visit&& visit) noexcept;
    [[nodiscard, gnu::always_inline]] bool fill(std::uint32_t first, std::span<const entity> wanted) noexcept;
    struct survivors;
    void collect(survivors& into) noexcept;
    void queue_tombstones(std::uint32_t number) noexcept;
    void queue_again(std::uint32_t number, wake_list& wake) noexcept;
    // Returns whether the link is the first of its queue, and so granted.
    [[nodiscard, gnu::always_inline]] bool queue(name fresh, std::uint64_t bits) noexcept;
    void grant(name one) noexcept;
    void dequeue(name leaving, wake_list& wake) noexcept;
    void grant_from(name first, wake_list& wake) noexcept;
    void mark_granted(std::uint32_t number, wake_list& wake) noexcept;
    void wake_waiter(std::uint32_t number, wake_list& wake) noexcept;
    void wake_successor(name successor, wake_list& wake) noexcept;
    void wake_follower(const record& leaving, wake_list& wake) noexcept;
    void record_neighbour(std::uint32_t number, std::uint32_t processor) noexcept;
    void remove_tombstone(name of) noexcept;
    void reap_request(std::uint32_t number, wake_list& wake) noexcept;
    void reap_link(name of, bool was_granted, wake_list& wake) noexcept;

    mapped::memory* at_;
    bool is_damaged_ = false;
};

}  // namespace sluice::fsmutex

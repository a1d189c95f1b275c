#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "sluice/sync/bucket.hpp"
#include "sluice/sync/fair_set.hpp"
#include "sluice/sync/range_lengths.hpp"

namespace sluice::sync {

/// Held ranges without conflicts, spread over cache lines by their position, so that threads that
/// lock different parts do not share cache lines. The numbers of segments (of 2^shift bytes) are
/// hashed to buckets. A *narrow* range, one of at most two segments, is entered for each of them;
/// others are *wide*.
///
/// Invariants, with `set` the fair_set of the same lock and "the mutex" the one that guards it:
///   1. an entered range is held; it conflicts with no other entered range;
///   2. a node is entered, or in the set, or both; both means that a request in the set conflicts
///      with it;
///   3. a node of the set that is not entered has a mark on each of its buckets, or one on the
///      whole table if it is wide; a marked bucket accepts no entries. So later requests find the
///      node in the set;
///   4. an entered node is added to the set under the mutex and the latch of a bucket with its
///      entry; it leaves its buckets before its holder checks whether it is in the set;
///   5. order of locks: the mutex, then the latches of buckets from the first to the last.
/// A table is never freed before the lock is destroyed, because threads may still be about to use
/// an old one. Its buckets are *closed*. A thread detects that under a bucket's latch, and then
/// acquires the mutex. Thread safety: any thread, the mutex where stated. Allocates: in make().
/// Blocks: for the latch of a bucket.
template <class Atomics>
class alignas(64) bucket_table {
public:
    using node = lock_node<Atomics>;
    using set = fair_set<Atomics>;

    /// Creates a table of 2^buckets_log2 closed buckets. Returns null if there is no memory.
    /// Allocates.
    [[nodiscard]] static bucket_table* make(unsigned buckets_log2, bucket_table* older) noexcept;
    /// Frees a table and the older ones.
    static void release(bucket_table* newest) noexcept;

    [[nodiscard]] unsigned buckets_log2() const noexcept { return buckets_log2_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_for(buckets_log2_); }

    using entering = bucket_entering;
    /// Enters a described node if nothing conflicts or may conflict with it, and its buckets have
    /// space.
    [[nodiscard]] entering enter(node& fresh) noexcept;
    enum class leaving { left, left_and_check, disputed, not_here };
    /// Removes a node from its buckets. Returns `disputed` if it is also in the set, and `not_here`
    /// if it is only in the set, or the table is closed. `left_and_check`: many nodes have left
    /// since this was last returned.
    [[nodiscard]] leaving leave(node& held) noexcept;
    /// Replaces the entries of `from` by `to`, which is described alike. Returns false if `from` is
    /// not entered, or is also in the set.
    [[nodiscard]] bool relocate(node& from, node& to) noexcept { return relocate_if(from, to, false); }

    // Under the mutex; complexity linear in the buckets for wide ranges,
    // entries(), open() and close().

    /// Returns the number of entries in use.
    [[nodiscard]] std::size_t entries() noexcept;
    [[nodiscard]] bool is_wide(const byte_range& where) const noexcept { return find(where).is_wide; }
    void mark(const byte_range& where) noexcept { add_marks(where, 1); }
    void unmark(const byte_range& where) noexcept { add_marks(where, -1); }
    /// Adds the entered nodes that conflict with `wanted`, which is marked, to the set.
    void gather(const lock_args& wanted, set& into) noexcept;
    /// Moves an entered node to the set, and marks it instead.
    void bring(node& held, set& into) noexcept;
    /// The same as relocate(), also for a node in the set.
    void relocate_under_mutex(node& from, node& to) noexcept { (void)relocate_if(from, to, true); }

    /// Opens a closed table: held nodes of the set without waiters are entered, the rest is marked.
    void open(set& from) noexcept;
    /// Closes the table: entered nodes are added to the set.
    void close(set& into) noexcept;

    /// The table created before this one.
    bucket_table* const older;

private:
    using bucket = lock_bucket<Atomics>;
    using entry = bucket_entry<Atomics>;

    struct place {
        std::uint32_t bucket = 0;
        std::uint64_t digest = 0;

        [[nodiscard]] entry entry_of(const node& one) const noexcept { return entry(one, digest); }
    };
    // The buckets of a range: the places of its one or two segments, in bucket order.
    struct places {
        std::array<place, 2> at;
        std::size_t count = 1;
        unsigned shift = 0;
        bool is_wide = false;  // then there are none
    };
    // Latches the buckets of a range, each once.
    class latched {
    public:
        latched(bucket_table& table, const places& where) noexcept;
        latched(const latched&) = delete;
        latched& operator=(const latched&) = delete;
        ~latched();

        [[nodiscard]] bucket& operator[](std::size_t i) const noexcept { return *buckets_[i]; }

    private:
        std::array<bucket*, 2> buckets_;  // the same twice, if there is only one
    };

    bucket_table(unsigned buckets_log2, bucket_table* older_table) noexcept
        : older(older_table), buckets_log2_(buckets_log2) {}

    [[nodiscard]] bucket* buckets() noexcept { return reinterpret_cast<bucket*>(this + 1); }
    [[nodiscard]] std::size_t size() const noexcept { return std::size_t{1} << buckets_log2_; }
    [[nodiscard]] std::span<bucket> all() noexcept { return {buckets(), size()}; }
    [[nodiscard]] static std::size_t bytes_for(unsigned buckets_log2) noexcept {
        return sizeof(bucket_table) + (std::size_t{1} << buckets_log2) * sizeof(bucket);
    }
    [[nodiscard]] places find(const byte_range& where) const noexcept;
    [[nodiscard]] place place_of(std::uint64_t segment) const noexcept;
    [[nodiscard]] entering enter_two(node& fresh) noexcept;
    [[nodiscard]] leaving leave_two(node& held) noexcept;
    // Returns whether the bucket is open, and the table still has the shift by which it was found.
    [[nodiscard]] bool is_current(const bucket& one, unsigned shift) const noexcept;
    // Returns whether, in addition, no node of the set can conflict with an entry of the bucket.
    [[nodiscard]] bool takes_in(const bucket& one, unsigned shift) const noexcept;
    [[nodiscard]] static entering add(const latched& at, const places& where, const node& one) noexcept;
    [[nodiscard]] bool relocate_if(node& from, node& to, bool even_if_in_set) noexcept;
    [[nodiscard]] leaving left(bucket& from, const node& held) noexcept;
    [[nodiscard]] bool is_time_to_check(bucket& left) noexcept;
    void add_marks(const byte_range& where, int count) noexcept;
    static void gather_from(bucket& one, const lock_args& wanted, set& into) noexcept;

    // Read by all threads, seldom written: under the mutex, while the table is closed.
    typename Atomics::template atomic<std::uint32_t> shift_{0};
    // Written under the mutex only; a bucket's latch orders it for threads that enter nodes.
    typename Atomics::template atomic<std::uint32_t> wide_marks_{0};
    const unsigned buckets_log2_;
    // An approximate number of notes. On a separate cache line, because it is written, though
    // rarely.
    alignas(64) typename Atomics::template atomic<std::uint32_t> notes_{0};
};

template <class Atomics>
bucket_table<Atomics>* bucket_table<Atomics>::make(unsigned buckets_log2, bucket_table* older) noexcept {
    static_assert(alignof(bucket_table) >= alignof(bucket) and sizeof(bucket_table) % alignof(bucket) == 0);
    void* const memory =
        ::operator new(bytes_for(buckets_log2), std::align_val_t{alignof(bucket_table)}, std::nothrow);
    if (memory == nullptr) return nullptr;
    auto* const made = ::new (memory) bucket_table(buckets_log2, older);
    for (bucket& one : made->all())
        ::new (&one) bucket();
    return made;
}

template <class Atomics>
void bucket_table<Atomics>::release(bucket_table* newest) noexcept {
    while (newest != nullptr) {
        bucket_table* const next = newest->older;
        for (const bucket& one : newest->all())
            ENSURE(one.marks == 0 and one.entries.front().is_free(),
                   "guards and requests destroyed before their lock");
        std::destroy(newest->all().begin(), newest->all().end());
        newest->~bucket_table();
        ::operator delete(newest, std::align_val_t{alignof(bucket_table)});
        newest = next;
    }
}

// Fibonacci hashing (Knuth, vol. 3, 6.4): the highest bits of the product choose the bucket, the
// next ones are the digest.
template <class Atomics>
auto bucket_table<Atomics>::place_of(std::uint64_t segment) const noexcept -> place {
    constexpr std::uint64_t golden = 0x9e37'79b9'7f4a'7c15;
    const std::uint64_t product = segment * golden;
    return {.bucket = static_cast<std::uint32_t>(product >> (64 - buckets_log2_)),
            .digest = product << buckets_log2_ >> 48};
}

template <class Atomics>
auto bucket_table<Atomics>::find(const byte_range& where) const noexcept -> places {
    places found;
    found.shift = shift_.load(std::memory_order_relaxed);
    const std::uint64_t first = where.first() >> found.shift;
    const std::uint64_t last = std::max(where.first(), where.last()) >> found.shift;
    found.at[0] = place_of(first);
    if (last == first) return found;
    found.is_wide = last - first > 1;
    found.at[1] = place_of(last);
    found.count = 2;
    if (found.at[1].bucket < found.at[0].bucket) std::swap(found.at[0], found.at[1]);
    return found;
}

template <class Atomics>
bucket_table<Atomics>::latched::latched(bucket_table& table, const places& where) noexcept {
    buckets_[0] = &table.buckets()[where.at[0].bucket];
    buckets_[1] = &table.buckets()[where.at[where.count - 1].bucket];
    buckets_[0]->latch.lock();
    if (buckets_[1] != buckets_[0]) buckets_[1]->latch.lock();
}

template <class Atomics>
bucket_table<Atomics>::latched::~latched() {
    if (buckets_[1] != buckets_[0]) buckets_[1]->latch.unlock();
    buckets_[0]->latch.unlock();
}

template <class Atomics>
bool bucket_table<Atomics>::is_current(const bucket& one, unsigned shift) const noexcept {
    return not one.is_closed and shift_.load(std::memory_order_relaxed) == shift;
}

template <class Atomics>
bool bucket_table<Atomics>::takes_in(const bucket& one, unsigned shift) const noexcept {
    // acquire: pairs with the release of add_marks(); changes made under a wide range are visible.
    return is_current(one, shift) and one.marks == 0 and wide_marks_.load(std::memory_order_acquire) == 0;
}

template <class Atomics>
auto bucket_table<Atomics>::add(const latched& at, const places& where, const node& one) noexcept
    -> entering {
    const entering first = at[0].add(where.at[0].entry_of(one));
    if (first != entering::entered or where.count == 1) return first;
    const entering second = at[1].add(where.at[1].entry_of(one));
    if (second != entering::entered) (void)at[0].remove(where.at[0].entry_of(one));
    return second;
}

// The short form, for most ranges.
template <class Atomics>
auto bucket_table<Atomics>::enter(node& fresh) noexcept -> entering {
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    const std::uint64_t segment = fresh.where().first() >> shift;
    if (fresh.where().last() >> shift != segment) return enter_two(fresh);
    const place at = place_of(segment);
    bucket& one = buckets()[at.bucket];
    one.latch.lock();
    const entering how = takes_in(one, shift) ? one.add(at.entry_of(fresh)) : entering::conflicting;
    one.latch.unlock();
    return how;
}

template <class Atomics>
auto bucket_table<Atomics>::enter_two(node& fresh) noexcept -> entering {
    const places where = find(fresh.where());
    if (where.is_wide) return entering::conflicting;
    const latched at(*this, where);
    if (not takes_in(at[0], where.shift) or not takes_in(at[1], where.shift)) return entering::conflicting;
    return add(at, where, fresh);
}

template <class Atomics>
auto bucket_table<Atomics>::leave(node& held) noexcept -> leaving {
    const unsigned shift = shift_.load(std::memory_order_relaxed);
    const std::uint64_t segment = held.where().first() >> shift;
    if (held.where().last() >> shift != segment) return leave_two(held);
    const place at = place_of(segment);
    bucket& one = buckets()[at.bucket];
    leaving how = leaving::not_here;
    one.latch.lock();
    if (is_current(one, shift) and one.remove(at.entry_of(held))) how = left(one, held);
    one.latch.unlock();
    return how;
}

template <class Atomics>
auto bucket_table<Atomics>::leave_two(node& held) noexcept -> leaving {
    const places where = find(held.where());
    if (where.is_wide) return leaving::not_here;
    const latched at(*this, where);
    if (not is_current(at[0], where.shift) or not is_current(at[1], where.shift) or
        not at[0].remove(where.at[0].entry_of(held)))
        return leaving::not_here;
    if (where.count == 2)
        ENSURE(at[1].remove(where.at[1].entry_of(held)),
               "a node is entered in both of its buckets or in none");
    return left(at[0], held);
}

template <class Atomics>
auto bucket_table<Atomics>::left(bucket& from, const node& held) noexcept -> leaving {
    if (held.is_in_set()) return leaving::disputed;
    return is_time_to_check(from) ? leaving::left_and_check : leaving::left;
}

template <class Atomics>
bool bucket_table<Atomics>::is_time_to_check(bucket& left) noexcept {
    using tuning = typename Atomics::tuning;
    left.leaves = (left.leaves + 1) & 0xff;
    if (left.leaves % tuning::leaves_per_note != 0) return false;
    const std::uint32_t notes = notes_.load(std::memory_order_relaxed) + 1;
    notes_.store(notes, std::memory_order_relaxed);  // one may be lost to another thread's
    return notes % tuning::notes_per_check == 0;
}

template <class Atomics>
bool bucket_table<Atomics>::relocate_if(node& from, node& to, bool even_if_in_set) noexcept {
    const places where = find(from.where());
    if (where.is_wide) return false;
    const latched at(*this, where);
    if (not is_current(at[0], where.shift) or not is_current(at[1], where.shift) or
        not at[0].has(where.at[0].entry_of(from)) or (from.is_in_set() and not even_if_in_set))
        return false;
    for (std::size_t i = 0; i != where.count; ++i)
        std::ranges::replace(at[i].entries, where.at[i].entry_of(from), where.at[i].entry_of(to));
    return true;
}

template <class Atomics>
std::size_t bucket_table<Atomics>::entries() noexcept {
    std::size_t count = 0;
    for (bucket& one : all()) {
        one.latch.lock();
        count += one.used();
        one.latch.unlock();
    }
    return count;
}

template <class Atomics>
void bucket_table<Atomics>::add_marks(const byte_range& where, int count) noexcept {
    const places found = find(where);
    const auto more = static_cast<std::uint32_t>(count);
    if (found.is_wide) {
        // release: pairs with the acquire of takes_in(), when it is 0 again.
        wide_marks_.store(wide_marks_.load(std::memory_order_relaxed) + more, std::memory_order_release);
        return;
    }
    constexpr std::uint32_t marks_max = (1U << 23) - 1;
    const latched at(*this, found);
    for (std::size_t i = 0; i != found.count; ++i) {
        ENSURE(count < 0 ? at[i].marks != 0 : at[i].marks != marks_max,
               "marks of one bucket within their bounds");
        at[i].marks = (at[i].marks + more) & marks_max;
    }
}

template <class Atomics>
void bucket_table<Atomics>::gather_from(bucket& one, const lock_args& wanted, set& into) noexcept {
    for (const entry& each : one.entries) {
        if (each.is_free()) return;
        node& held = *each.address();
        if (not held.is_in_set() and held.where().overlaps(wanted.where) and held.blocks_later(wanted))
            into.admit(held);
    }
}

template <class Atomics>
void bucket_table<Atomics>::gather(const lock_args& wanted, set& into) noexcept {
    const places where = find(wanted.where);
    if (not where.is_wide) {
        const latched at(*this, where);
        for (std::size_t i = 0; i != where.count; ++i)
            gather_from(at[i], wanted, into);
        return;
    }
    for (bucket& one : all()) {
        one.latch.lock();
        gather_from(one, wanted, into);
        one.latch.unlock();
    }
}

template <class Atomics>
void bucket_table<Atomics>::bring(node& held, set& into) noexcept {
    if (held.is_marked) return;
    const places where = find(held.where());
    const latched at(*this, where);
    for (std::size_t i = 0; i != where.count; ++i) {
        ENSURE(at[i].remove(where.at[i].entry_of(held)), "a range without marks is in its buckets");
        ++at[i].marks;
    }
    held.is_marked = true;
    if (not held.is_in_set()) into.admit(held);
}

// No range can enter a closed bucket, so the ranges of the set cannot conflict while they are
// spread. All of them are spread before the first bucket is opened.
template <class Atomics>
void bucket_table<Atomics>::open(set& from) noexcept {
    range_lengths lengths;
    from.for_each([&](const node& one) { lengths.add(one.where()); });
    shift_.store(lengths.usual_log2(), std::memory_order_relaxed);
    from.for_each([&](node& one) {
        const places where = find(one.where());
        const bool is_uncontended =
            not one.is_waiting() and not where.is_wide and not from.has_waiters_over(one.where());
        if (is_uncontended and add(latched(*this, where), where, one) == entering::entered) {
            from.erase(one);
        } else {
            mark(one.where());
            one.is_marked = true;
        }
    });
    for (bucket& one : all()) {
        one.latch.lock();
        one.is_closed = 0;
        one.latch.unlock();
    }
}

template <class Atomics>
void bucket_table<Atomics>::close(set& into) noexcept {
    for (bucket& one : all()) {
        one.latch.lock();
        one.is_closed = 1;
        one.marks = 0;
        for (entry& each : one.entries) {
            if (not each.is_free() and not each.address()->is_in_set()) into.admit(*each.address());
            each = entry();
        }
        one.latch.unlock();
    }
    wide_marks_.store(0, std::memory_order_relaxed);
    into.for_each([](node& one) { one.is_marked = false; });
}

}  // namespace sluice::sync

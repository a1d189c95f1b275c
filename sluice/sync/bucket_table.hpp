#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "sluice/sync/bucket_latch.hpp"
#include "sluice/sync/fair_set.hpp"
#include "sluice/sync/range_lengths.hpp"

namespace sluice::sync {

/// Ranges that are held and about which there is no dispute, spread over cache lines by where they are, so
/// that threads which lock different places do not meet. The numbers of places (segments of 2^shift bytes)
/// are hashed to buckets; a *narrow* range, one of at most two segments, is entered for each of them.
///
/// Invariants, with `set` the fair_set of the same lock and "the latch" the one that guards it:
///   1. a range that is entered is held; it conflicts with no other that is entered;
///   2. a node is entered, or in the set, or both; both means that somebody in the set asked for part of it;
///   3. a node of the set that is not entered has a mark on each of its buckets, or one on the whole table if
///      it is wide; what has a mark takes nothing in. So whoever comes after it meets it in the set;
///   4. an entered node goes into the set under the latch and that of a bucket it is entered in; it leaves
///      its buckets before its holder looks whether it is in the set;
///   5. order of latches: the latch, then buckets from the first to the last.
/// A table is never given back while the lock lives, since threads may be on their way to one that was left:
/// its buckets are *closed*, which they see under a bucket's latch, and then they take the latch. Thread
/// safety: any thread, the latch where it says so. Allocates: in make(). Blocks: for the latch of a bucket.
template <class Atomics>
class alignas(64) bucket_table {
public:
    using node = lock_node<Atomics>;
    using set = fair_set<Atomics>;

    /// 2^buckets_log2 buckets, closed. Null: there is no memory. Allocates.
    [[nodiscard]] static bucket_table* make(unsigned buckets_log2, bucket_table* older) noexcept;
    /// Gives back a table, and those that are older.
    static void give_back(bucket_table* newest) noexcept;

    [[nodiscard]] unsigned buckets_log2() const noexcept { return buckets_log2_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_for(buckets_log2_); }

    enum class entering { entered, in_the_way, crowded };
    /// Enters a described node if nothing is in its way, or may be, and there is room.
    [[nodiscard]] entering enter(node& fresh) noexcept;
    enum class leaving { left, left_and_look, disputed, not_here };
    /// Takes a node out of its buckets. Disputed: it is in the set as well. Not here: it is in the set, or
    /// the table is closed. `left_and_look`: so did many since the last time it said that.
    [[nodiscard]] leaving leave(node& held) noexcept;
    /// Puts `to`, described alike, where `from` is entered; false if that is nowhere, or in the set as well.
    [[nodiscard]] bool relocate(node& from, node& to) noexcept { return relocate_if(from, to, false); }

    // Under the latch; complexity linear in the buckets for wide ranges, entries(), open() and close().

    /// How many are in use.
    [[nodiscard]] std::size_t entries() noexcept;
    [[nodiscard]] bool is_wide(const byte_range& where) const noexcept { return find(where).is_wide; }
    void mark(const byte_range& where) noexcept { add_marks(where, 1); }
    void unmark(const byte_range& where) noexcept { add_marks(where, -1); }
    /// Brings what is entered and in the way of `wanted`, which is marked, into the set.
    void gather(const lock_args& wanted, set& into) noexcept;
    /// Brings an entered node into the set, and marks it instead.
    void bring(node& held, set& into) noexcept;
    /// The same as relocate(), of what is in the set as well.
    void relocate_under_latch(node& from, node& to) noexcept { (void)relocate_if(from, to, true); }

    /// Opens a closed table: what the set holds and nobody waits for is entered, the rest is marked.
    void open(set& from) noexcept;
    /// Closes it: what is entered goes into the set.
    void close(set& into) noexcept;

    /// Of tables made before.
    bucket_table* const older;

private:
    static constexpr std::size_t entries_max = 7;

    // What is entered is a pointer with a digest of its segment above: another digest, another segment.
    class entry {
    public:
        entry() noexcept = default;
        entry(const node& one, std::uint64_t digest) noexcept
            : bits_(reinterpret_cast<std::uintptr_t>(&one) | digest << address_bits) {
            ENSURE(address() == &one, "addresses of programs have 48 bits");
        }
        [[nodiscard]] friend bool operator==(entry, entry) noexcept = default;
        [[nodiscard]] bool is_free() const noexcept { return bits_ == 0; }
        [[nodiscard]] bool may_be_in(std::uint64_t digest) const noexcept {
            return bits_ >> address_bits == digest;
        }
        [[nodiscard]] std::uint64_t digest() const noexcept { return bits_ >> address_bits; }
        [[nodiscard]] node* address() const noexcept {
            return reinterpret_cast<node*>(bits_ << digest_bits >> digest_bits);
        }

    private:
        static constexpr unsigned address_bits = 48;
        static constexpr unsigned digest_bits = 16;

        std::uint64_t bits_ = 0;
    };

    // A cache line, where atomics are words.
    struct alignas(64) bucket {
        bucket_latch<Atomics> latch;
        // Guarded by it:
        std::uint32_t marks : 23 = 0;  // changed under the lock's latch, too
        std::uint32_t is_closed : 1 = 1;
        std::uint32_t leaves : 8 = 0;            // the lowest bits of how many
        std::array<entry, entries_max> entries;  // those in use come first

        [[nodiscard]] std::size_t used() const noexcept;
        [[nodiscard]] bool has(entry one) const noexcept;
        [[nodiscard]] entering add(entry one) noexcept;
        [[nodiscard]] bool remove(entry one) noexcept;
    };
    static_assert(not std::is_same_v<Atomics, real_atomics> or sizeof(bucket) == 64, "a cache line");

    struct place {
        std::uint32_t bucket = 0;
        std::uint64_t digest = 0;

        [[nodiscard]] entry entry_of(const node& one) const noexcept { return entry(one, digest); }
    };
    // Where a range belongs: the places of its one or two segments, in the order of their buckets.
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
        std::array<bucket*, 2> buckets_;  // the same twice, if there is one
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
    // Whether it is open, and the table still has the shift by which it was found.
    [[nodiscard]] bool is_current(const bucket& one, unsigned shift) const noexcept;
    // Whether, besides, nothing in the set can be in the way of what is entered in it.
    [[nodiscard]] bool takes_in(const bucket& one, unsigned shift) const noexcept;
    [[nodiscard]] static entering add(const latched& at, const places& where, const node& one) noexcept;
    [[nodiscard]] bool relocate_if(node& from, node& to, bool even_if_in_set) noexcept;
    [[nodiscard]] leaving left(bucket& from, const node& held) noexcept;
    [[nodiscard]] bool is_time_to_look(bucket& left) noexcept;
    void add_marks(const byte_range& where, int count) noexcept;
    static void gather_from(bucket& one, const lock_args& wanted, set& into) noexcept;

    // Read by all, seldom written: under the latch, the table being closed.
    typename Atomics::template atomic<std::uint32_t> shift_{0};
    // Written under the latch only; a bucket's latch orders it for whoever enters.
    typename Atomics::template atomic<std::uint32_t> wide_marks_{0};
    const unsigned buckets_log2_;
    // Notes of leaves, counted roughly. On a line of its own: it is written, if rarely.
    alignas(64) typename Atomics::template atomic<std::uint32_t> notes_{0};
};

}  // namespace sluice::sync

#include "sluice/sync/bucket_table_impl.hpp"

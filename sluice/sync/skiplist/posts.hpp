#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "sluice/sync/skiplist/link.hpp"

namespace sluice::sync::skiplist {

/// The positions of the entry points (`post`) of a skip list. An entry point is an empty range that
/// the list itself holds, so that a search need not begin at the head, which all threads share: it
/// is at the beginning of a *region*. A region has 2^shift bytes, such that 64 of them cover the
/// requested ranges.
///
/// Everything here is a hint: a lookup of a key returns the number of a node and its state word,
/// and the caller checks whether the node is still that entry point. Thread safety: any thread.
/// Allocates: nothing.
template <class Atomics, class Steps>
class posts {
public:
    /// Node `number` was linked as an entry point while its state word had the value `state_word`.
    struct post {
        node_number number = no_node;
        std::uint32_t state_word = 0;
    };
    static constexpr unsigned max = 64;

    /// Returns the first byte of the region of `first`. 0: the head is there, and no entry point.
    [[nodiscard]] std::uint64_t begin_of(std::uint64_t first) const noexcept {
        const unsigned shift = shift_.load(std::memory_order_relaxed);
        return first >> shift << shift;
    }
    [[nodiscard]] post at(std::uint64_t begin) const noexcept {
        // acquire: pairs with the release of put(); the memory of that node is seen.
        return unpacked(slot_of(begin).load(std::memory_order_acquire));
    }
    /// Records a linked entry point. Returns the one that it replaces.
    [[nodiscard]] post put(std::uint64_t begin, post fresh) noexcept {
        const std::uint64_t word = std::uint64_t{fresh.state_word} << 32 | fresh.number;
        return unpacked(slot_of(begin).exchange(word, std::memory_order_acq_rel));
    }

    /// Records a request that begins with `first`, one of many: regions follow the requests.
    /// Threads may overwrite each other's records, which is as good as one record less.
    void record(std::uint64_t first) noexcept {
        const std::uint64_t lowest = std::min(lowest_.load(std::memory_order_relaxed), first);
        const std::uint64_t highest = std::max(highest_.load(std::memory_order_relaxed), first);
        const unsigned recorded = recorded_.load(std::memory_order_relaxed) + 1;
        const bool is_enough = recorded == Steps::requests_recorded;
        if (is_enough) cover(highest - lowest);
        lowest_.store(is_enough ? ~std::uint64_t{0} : lowest, std::memory_order_relaxed);
        highest_.store(is_enough ? 0 : highest, std::memory_order_relaxed);
        recorded_.store(is_enough ? 0 : recorded, std::memory_order_relaxed);
    }

private:
    template <class T>
    using atomic = typename Atomics::template atomic<T>;

    static constexpr unsigned max_log2 = std::countr_zero(max);
    static constexpr unsigned shift_max = 63;

    [[nodiscard]] static post unpacked(std::uint64_t word) noexcept {
        return {.number = static_cast<node_number>(word),
                .state_word = static_cast<std::uint32_t>(word >> 32)};
    }
    [[nodiscard]] const atomic<std::uint64_t>& slot_of(std::uint64_t begin) const noexcept {
        return slots_[begin >> shift_.load(std::memory_order_relaxed) & (max - 1)];
    }
    [[nodiscard]] atomic<std::uint64_t>& slot_of(std::uint64_t begin) noexcept {
        return const_cast<atomic<std::uint64_t>&>(std::as_const(*this).slot_of(begin));
    }
    // Regions twice as long as they must be are good enough: all posts move
    // when the length changes.
    void cover(std::uint64_t span) noexcept {
        const auto bits = static_cast<unsigned>(std::bit_width(span));
        const unsigned wanted = std::min(bits - std::min(bits, max_log2), shift_max);
        const unsigned shift = shift_.load(std::memory_order_relaxed);
        if (shift < wanted or shift > wanted + 1) shift_.store(wanted, std::memory_order_relaxed);
    }

    // Read by every search, seldom changed.
    alignas(64) std::array<atomic<std::uint64_t>, max> slots_{};
    alignas(64) atomic<unsigned> shift_{
        shift_max};  // half of all bytes: the head alone serves the first half
    // The requests recorded.
    alignas(64) atomic<std::uint64_t> lowest_{~std::uint64_t{0}};
    atomic<std::uint64_t> highest_{0};
    atomic<unsigned> recorded_{0};
};

}  // namespace sluice::sync::skiplist

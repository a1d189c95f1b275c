#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sluice/sync/skiplist/link.hpp"

namespace sluice::sync::skiplist {

/// The bits of a node's state word (`state_word`).
struct state_word_bits {
    static constexpr std::uint32_t asleep = 1;
    static constexpr std::uint32_t post = 2;
    static constexpr std::uint32_t one_range = 4;

    [[nodiscard]] static constexpr std::uint32_t uses(std::uint32_t state_word) noexcept {
        return state_word / one_range;
    }
    [[nodiscard]] static constexpr std::uint32_t signalled(std::uint32_t state_word) noexcept {
        return (state_word | asleep | post) + 1;
    }
    [[nodiscard]] static constexpr bool is_same_range(std::uint32_t state_word,
                                                      std::uint32_t other) noexcept {
        return (state_word ^ other) <= asleep;
    }
};

/// Levels of an ordinary node, which is in one cache line, and of a tall one, which takes two. One
/// node in a thousand is tall.
constexpr unsigned levels_in_cell = 5;
constexpr unsigned height_max = 13;

/// One range of the skip list, followed by its tower of links. Its memory remains a node until its
/// pool is destroyed, but for different ranges in turn. A thread that reaches it without holding it
/// trusts its content only if the link to it has not changed in the meantime.
template <class Atomics>
struct node {
    template <class T>
    using atomic = typename Atomics::template atomic<T>;
    using link = atomic<std::uint64_t>;

    // Written by the holder of the node, before it is in the list.
    atomic<std::uint64_t> first{0};
    atomic<std::uint64_t> last{0};
    // The number of ranges released from this node, times four; plus two if it is an entry point;
    // plus one if a thread may be asleep until the range is released.
    atomic<std::uint32_t> state_word{0};
    atomic<node_number> next_free{no_node};

    /// `level` is below the height of the node.
    [[nodiscard]] link& at(unsigned level) noexcept { return reinterpret_cast<link*>(this + 1)[level]; }
};

/// A node with its tower.
template <class Atomics, unsigned Levels>
struct tower {
    node<Atomics> base;
    std::array<typename node<Atomics>::link, Levels> links{};
};
template <class Atomics>
using low_tower = tower<Atomics, levels_in_cell>;
template <class Atomics>
using high_tower = tower<Atomics, height_max>;

/// The storage of an ordinary node of the pool; a tall one takes two.
template <class Atomics>
struct alignas(64) cell {
    std::byte memory[sizeof(low_tower<Atomics>)];

    static_assert(std::is_standard_layout_v<high_tower<Atomics>>);
    static_assert(offsetof(low_tower<Atomics>, links) == sizeof(node<Atomics>), "links follow their node");
    static_assert(offsetof(high_tower<Atomics>, links) == sizeof(node<Atomics>), "links follow their node");
};

}  // namespace sluice::sync::skiplist

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sluice/sync/skiplist/link.hpp"

namespace sluice::sync::skiplist {

/// What a node's bell says.
struct bell_bits {
    static constexpr std::uint32_t asleep = 1;
    static constexpr std::uint32_t post = 2;
    static constexpr std::uint32_t one_range = 4;

    [[nodiscard]] static constexpr std::uint32_t uses(std::uint32_t bell) noexcept {
        return bell / one_range;
    }
    [[nodiscard]] static constexpr std::uint32_t rung(std::uint32_t bell) noexcept {
        return (bell | asleep | post) + 1;
    }
    [[nodiscard]] static constexpr bool is_same_range(std::uint32_t bell, std::uint32_t other) noexcept {
        return (bell ^ other) <= asleep;
    }
};

/// Levels of an ordinary node, which lies in one cache line, and of a tall one, which takes two. One node of
/// a thousand is tall.
constexpr unsigned levels_in_cell = 5;
constexpr unsigned height_max = 13;

/// One range of the skip list; its tower of links lies behind it. Its memory is a node for as long as its
/// pool lives, but for one range after the other: who reaches it without holding it believes what it says
/// only if the link by which it came has not changed meanwhile.
template <class Atomics>
struct node {
    template <class T>
    using atomic = typename Atomics::template atomic<T>;
    using link = atomic<std::uint64_t>;

    // Written by whoever holds the node, before it is in the list.
    atomic<std::uint64_t> first{0};
    atomic<std::uint64_t> last{0};
    // How often a range was given back here, times four; two if it is a post; and one if somebody may be
    // asleep until it is given back.
    atomic<std::uint32_t> bell{0};
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

/// What an ordinary node of the pool lies in; a tall one lies in two.
template <class Atomics>
struct alignas(64) cell {
    std::byte memory[sizeof(low_tower<Atomics>)];

    static_assert(std::is_standard_layout_v<high_tower<Atomics>>);
    static_assert(offsetof(low_tower<Atomics>, links) == sizeof(node<Atomics>),
                  "links lie behind their node");
    static_assert(offsetof(high_tower<Atomics>, links) == sizeof(node<Atomics>),
                  "links lie behind their node");
};

}  // namespace sluice::sync::skiplist

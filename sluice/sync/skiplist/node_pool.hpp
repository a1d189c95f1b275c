#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/sync/skiplist/node.hpp"
#include "sluice/sync/skiplist/thread_slot.hpp"
#include "sluice/sync/small_mutex.hpp"

namespace sluice::sync::skiplist {

/// The nodes of one skip list: created when needed for the first time, reused at once, and freed
/// when the pool is destroyed.
///
/// Each thread has a stripe, a small stack of free nodes. Nodes that do not fit are on a shared
/// stack. A thread never waits for a stripe that it shares: if another thread uses it, it uses the
/// shared stack.
///
/// Invariants:
///   1. a node is with one user, in one stripe, on one shared stack, or not created yet;
///   2. memory that was a node of some size stays one of that size: stale readers find atomics, if
///      outdated ones;
///   3. nodes are created only when the shared stack of their size was empty, so of each size there
///      are never more than were with users at once, plus, of low ones, `idle_max` in stripes.
/// Thread safety: any thread. Lock-free, except for creating nodes, which acquires a mutex.
/// Allocates: the first block on construction; afterwards as much as there is, whenever that is
/// used up, so rarely, and never again once there are as many nodes as are used at once.
template <class Atomics>
class node_pool {
public:
    using node = skiplist::node<Atomics>;
    static_assert(sizeof(high_tower<Atomics>) <= 2 * sizeof(cell<Atomics>), "a tall node takes two cells");

    static constexpr unsigned stripes = 16;
    static constexpr unsigned stripe_nodes_max = 26;
    static constexpr std::size_t idle_max = std::size_t{stripes} * stripe_nodes_max;
    /// The largest number of nodes; tall ones count twice.
    static constexpr node_number cells_max = (node_number{1} << node_number_bits) - 1;

    /// A node with a tower of `height` levels.
    struct taken {
        node* what = nullptr;
        node_number number = no_node;
        unsigned height = 1;
    };
    struct settings {
        unsigned height_max = skiplist::height_max;
        node_number nodes_reserved = 32'766;
    };

    explicit node_pool(const settings& wanted)
        : height_max_(wanted.height_max),
          block_bits_(static_cast<unsigned>(std::bit_width(wanted.nodes_reserved + end_cells - 1))) {
        ENSURE(wanted.height_max >= 1 and wanted.height_max <= skiplist::height_max,
               "a tower has 1 to 13 levels");
        ENSURE(wanted.nodes_reserved >= 1 and wanted.nodes_reserved <= cells_max / 2,
               "reserved nodes within the limit");
        blocks_[0].reset(new cell<Atomics>[std::size_t{1} << block_bits_]);
        first_block_ = blocks_[0].get();
        auto* const end = new (&first_block_[the_end]) high_tower<Atomics>();
        end->base.first.store(~std::uint64_t{0}, std::memory_order_relaxed);
        end->base.last.store(~std::uint64_t{0}, std::memory_order_relaxed);
        for (unsigned i = 0; i != stripes; ++i)
            stripes_[i].random = (i + 1) * 0x9e37'79b9'7f4a'7c15U;  // not zero, and different
    }

    /// Returns a free node with a random height: more than k levels with a probability of 4^-k, and
    /// no more than that number of nodes would fill, or than `levels_max`.
    [[nodiscard]] taken take(unsigned levels_max = height_max) noexcept {
        stripe& own = stripes_[thread_slot() % stripes];
        node_number number = no_node;
        unsigned height = 1;
        // acquire: pairs with the release of leave().
        if (own.is_taken.exchange(1, std::memory_order_acquire) == 0) [[likely]] {
            if (nodes() >= few_nodes) height = std::min(random_height(own.random), levels_max);
            if (height <= levels_in_cell and own.count != 0) number = own.nodes[--own.count];
            leave(own);
        }
        if (number == no_node) [[unlikely]]
            number = take_shared(height);
        return {.what = &at(number), .number = number, .height = height};
    }

    /// Returns a node for reuse by any thread, at once: no link of the list leads to it any more.
    void give(const taken& used) noexcept {
        if (used.height <= levels_in_cell) {
            stripe& own = stripes_[thread_slot() % stripes];
            // acquire: pairs with the release of leave().
            if (own.is_taken.exchange(1, std::memory_order_acquire) == 0) {
                const bool has_room = own.count != stripe_nodes_max;
                if (has_room) own.nodes[own.count++] = used.number;
                leave(own);
                if (has_room) return;
            }
        }
        push(free_[used.height > levels_in_cell], used);
    }

    [[nodiscard]] node& at(node_number number) noexcept {
        if (number >> block_bits_ == 0) [[likely]]
            return node_in(first_block_[number]);
        const place where = place_of(number);
        return node_in(blocks_[where.block][number - where.begin]);
    }

    /// Returns the number of nodes, which never decreases.
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.load(std::memory_order_relaxed); }
    [[nodiscard]] unsigned highest() const noexcept { return height_max_; }

private:
    template <class T>
    using atomic = typename Atomics::template atomic<T>;

    // Used by the thread that took it; two cache lines.
    struct alignas(64) stripe {
        atomic<std::uint32_t> is_taken{0};
        std::uint32_t count = 0;
        std::uint64_t random = 0;
        std::array<node_number, stripe_nodes_max> nodes{};
    };
    // A stack of free nodes (Treiber): the topmost, and in the upper bits how often the stack
    // changed, so that an equal value means that it is unchanged.
    struct alignas(64) stack {
        atomic<std::uint64_t> top{0};
    };

    static void leave(stripe& own) noexcept {
        // Pairs with the acquire of the next user.
        own.is_taken.store(0, std::memory_order_release);
    }

    // A block, and the number of the node in its first cell.
    struct place {
        unsigned block;
        node_number begin;
    };
    [[nodiscard]] place place_of(node_number number) const noexcept {
        if (number >> block_bits_ == 0) return {0, 0};
        const auto bits = static_cast<unsigned>(std::bit_width(number));
        return {bits - block_bits_, node_number{1} << (bits - 1)};
    }

    [[nodiscard]] static node& node_in(cell<Atomics>& where) noexcept {
        return *std::launder(reinterpret_cast<node*>(where.memory));
    }

    // This many ranges are found from their entry points as fast without levels; and some of these
    // nodes are the entry points.
    static constexpr std::size_t few_nodes = 256;
    // Levels that this many nodes fill, each with a quarter of those below: the highest has two to
    // eight.
    [[nodiscard]] unsigned levels_of_use() const noexcept {
        return std::min(static_cast<unsigned>(std::bit_width(nodes())) / 2, height_max_);
    }
    // xorshift64 (Marsaglia 2003): two bits for each level.
    [[nodiscard]] unsigned random_height(std::uint64_t& random) const noexcept {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const auto pairs = static_cast<unsigned>(std::countr_zero(random | std::uint64_t{1} << 62)) / 2;
        return std::min(pairs + 1, levels_of_use());
    }

    [[nodiscard]] static constexpr std::uint64_t changed(std::uint64_t top, node_number number) noexcept {
        const std::uint64_t tag_one = std::uint64_t{1} << node_number_bits;
        return ((top & ~(tag_one - 1)) + tag_one) | number;
    }
    [[nodiscard]] static constexpr node_number topmost(std::uint64_t top) noexcept {
        return static_cast<node_number>(top) & cells_max;
    }

    [[nodiscard, gnu::noinline]] node_number take_shared(unsigned height) noexcept {
        const bool is_tall = height > levels_in_cell;
        const node_number popped = pop(free_[is_tall]);
        return popped != no_node ? popped : make(is_tall);
    }
    void push(stack& onto, const taken& used) noexcept {
        std::uint64_t top = onto.top.load(std::memory_order_relaxed);
        do
            used.what->next_free.store(topmost(top), std::memory_order_relaxed);
        // release: pairs with the acquire of pop(): all earlier writes to the node, and the node
        // below it.
        while (not onto.top.compare_exchange_weak(top, changed(top, used.number), std::memory_order_release,
                                                  std::memory_order_relaxed));
    }
    [[nodiscard]] node_number pop(stack& from) noexcept {
        // acquire: pairs with the release of push().
        std::uint64_t top = from.top.load(std::memory_order_acquire);
        while (topmost(top) != no_node) {
            // Perhaps on another stack by now; then the exchange fails because of the tag.
            const node_number below = at(topmost(top)).next_free.load(std::memory_order_relaxed);
            if (from.top.compare_exchange_weak(top, changed(top, below), std::memory_order_acquire,
                                               std::memory_order_acquire))
                return topmost(top);
        }
        return no_node;
    }

    // Creates a node after the existing ones.
    [[nodiscard]] node_number make(bool is_tall) noexcept {
        const std::lock_guard making(mutex_);
        const node_number cells = is_tall ? 2 : 1;
        // A tall node does not reach into the next block, but leaves one cell
        // unused, at most, in each.
        if (is_tall and (made_ + 1) >> block_bits_ != 0 and std::has_single_bit(made_ + 1)) ++made_;
        ENSURE(made_ <= cells_max - cells, "no more than 2^24 ranges at once");
        const place where = place_of(made_);
        if (blocks_[where.block] == nullptr) blocks_[where.block].reset(new cell<Atomics>[where.begin]);
        cell<Atomics>& first = blocks_[where.block][made_ - where.begin];
        if (is_tall)
            new (&first) high_tower<Atomics>();
        else
            new (&first) low_tower<Atomics>();
        nodes_.store(nodes() + 1, std::memory_order_relaxed);
        return std::exchange(made_, made_ + cells);
    }

    static constexpr node_number end_cells = 2;  // the end is as high as the head

    // Read often, written seldom.
    const unsigned height_max_;
    // Block 0 has 2^block_bits_ cells, and each other as many as all before it.
    const unsigned block_bits_;
    cell<Atomics>* first_block_ = nullptr;
    std::array<std::unique_ptr<cell<Atomics>[]>, node_number_bits> blocks_;
    atomic<std::size_t> nodes_{0};

    alignas(64) basic_small_mutex<Atomics> mutex_;  // for the members below, and for blocks_
    node_number made_ = end_cells;                  // the next cell to use

    std::array<stack, 2> free_;  // ordinary ones and tall ones
    std::array<stripe, stripes> stripes_;
};

}  // namespace sluice::sync::skiplist

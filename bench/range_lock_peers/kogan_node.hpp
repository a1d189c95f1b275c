#pragma once

#include <atomic>
#include <cstdint>

#include "bench/range_lock_peers/node_pools.hpp"
#include "bench/range_lock_peers/peer.hpp"

namespace sluice::bench::range_locks {

/// A range in a list lock, and the links of such a list.
///
/// A link is the address of a node, or 0, plus a mark in the lowest bit. In a node, the mark shows
/// that the node is released; its link does not change any more. In the head, it shows that the
/// list is a single node, taken by the fast path, which its holder may remove directly.
struct alignas(64) kogan_node {
    std::atomic<std::uintptr_t> next{0};
    extent where;
    access how = access::exclusive;
    kogan_node* pool_next = nullptr;

    static constexpr std::uintptr_t mark = 1;

    [[nodiscard]] static bool is_marked(std::uintptr_t link) noexcept { return (link & mark) != 0; }
    [[nodiscard]] static kogan_node* at(std::uintptr_t link) noexcept {
        return reinterpret_cast<kogan_node*>(link & ~mark);
    }
    [[nodiscard]] std::uintptr_t link() const noexcept { return reinterpret_cast<std::uintptr_t>(this); }

    // Order of all links: sequential consistency, which node_pools needs and which costs nothing
    // here: loads and read-modify-writes are as they would be on x86, and no link is stored after
    // others can see it.

    /// Called once, by the holder. An addition, because a range may be linked after this one
    /// concurrently; a load and a store would lose it.
    void release() noexcept { next.fetch_add(mark, std::memory_order_seq_cst); }
    [[nodiscard]] bool is_released() const noexcept {
        return is_marked(next.load(std::memory_order_seq_cst));
    }
};

using kogan_pools = node_pools<kogan_node>;
using kogan_link = std::atomic<std::uintptr_t>;

/// A place in a list: a link, and its value when it was read.
struct kogan_place {
    kogan_link* from;
    std::uintptr_t link;

    void look() noexcept { link = from->load(std::memory_order_seq_cst); }
    [[nodiscard]] kogan_node* node() const noexcept { return kogan_node::at(link); }
    void advance() noexcept {
        from = &node()->next;
        look();
    }
    /// Inserts `fresh` before the current node, unless the link changed; then reads it again.
    [[nodiscard]] bool insert(kogan_node& fresh, std::uintptr_t link_to_fresh) noexcept {
        fresh.next.store(link, std::memory_order_relaxed);  // not visible to others yet
        return from->compare_exchange_strong(link, link_to_fresh, std::memory_order_seq_cst);
    }
    /// Removes the current node, which is released; reads the link again.
    void unlink(kogan_pools::pool& pool) noexcept {
        kogan_node& released = *node();
        const std::uintptr_t behind = released.next.load(std::memory_order_seq_cst) & ~kogan_node::mark;
        if (not from->compare_exchange_strong(link, behind, std::memory_order_seq_cst)) return;
        link = behind;
        pool.retire(released);
    }
};

/// The head of a list lock. The destructor returns the remaining nodes: no range is held then.
class kogan_head {
public:
    kogan_head() noexcept = default;
    kogan_head(const kogan_head&) = delete;
    kogan_head& operator=(const kogan_head&) = delete;
    ~kogan_head() {
        kogan_pools::pool& pool = kogan_pools::of_this_thread();
        for (kogan_node* node = kogan_node::at(first_.load(std::memory_order_seq_cst)); node != nullptr;) {
            kogan_node* const behind = kogan_node::at(node->next.load(std::memory_order_seq_cst));
            pool.release(*node);
            node = behind;
        }
    }

    [[nodiscard]] kogan_place begin() noexcept {
        kogan_place place{.from = &first_, .link = 0};
        place.look();
        return place;
    }
    [[nodiscard]] bool is_at(const kogan_place& place) const noexcept { return place.from == &first_; }
    /// The current node is released: starts again. Or the head is marked: then the single node
    /// becomes an ordinary one.
    void leave_marked(kogan_place& place) noexcept {
        if (is_at(place))
            first_.compare_exchange_strong(place.link, place.link & ~kogan_node::mark,
                                           std::memory_order_seq_cst);
        place = begin();
    }
    /// Removes a node that the fast path inserted, and returns it to the pool. No thread follows a
    /// marked head without first removing the mark, so no thread has reached the node. Returns
    /// false if it is an ordinary one.
    [[nodiscard]] bool take_out(kogan_node& alone) noexcept {
        std::uintptr_t link = alone.link() | kogan_node::mark;
        if (first_.load(std::memory_order_relaxed) != link or
            not first_.compare_exchange_strong(link, 0, std::memory_order_seq_cst))
            return false;
        kogan_pools::of_this_thread().release(alone);
        return true;
    }

private:
    kogan_link first_{0};
};

}  // namespace sluice::bench::range_locks

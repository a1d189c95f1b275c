#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bench/range_lock_peers/spinning.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::range_locks {

/// The allocation and reclamation of the nodes of the list locks, after Kogan, Dice and Issa
/// (EuroSys 2020): a pool for each thread, and a counter for each thread that is odd while it walks
/// a list.
///
/// A node that was unlinked waits in the pool of the thread that unlinked it, until every thread
/// that walked at that time has stopped or started again. Unlike in the paper, a thread whose nodes
/// all wait does not wait with them: it allocates others, up to `waiting_max`. Memory is freed when
/// the program ends. Shared by all locks with this kind of node.
///
/// Invariant: a node is reused only after each counter that was odd when it had been unlinked has
/// changed. Walkers make theirs odd before they read a link, reclaimers read the counters after
/// they changed the link, all sequentially consistent: so one of the two sees the other.
/// Node: default constructible, with a member `Node* pool_next` that is not the
/// link the walkers follow.
template <class Node>
class node_pools {
public:
    class pool;
    class walk;

    [[nodiscard]] static pool& of_this_thread() {
        thread_local pool mine;
        return mine;
    }

private:
    static constexpr std::size_t threads_max = 256;
    static constexpr std::size_t batch = 128;
    static constexpr std::size_t waiting_max = 64 * batch;

    struct alignas(64) walk_counter {
        // Written by one thread only, so the read-modify-write is only needed for its order.
        void store_odd() noexcept {
            value.exchange(value.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
        }
        // release: pairs with the loads of has_passed().
        void store_even() noexcept {
            value.store(value.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        }
        std::atomic<std::uint64_t> value{0};
        std::atomic<bool> is_taken{false};
    };

    struct stack {
        Node* first = nullptr;
        std::size_t count = 0;

        void push(Node& node) noexcept {
            node.pool_next = first;
            first = &node;
            ++count;
        }
        Node& pop() noexcept {
            Node& node = *first;
            first = node.pool_next;
            --count;
            return node;
        }
    };

    // The shared state of all threads, guarded by the mutex except for the counters.
    struct global {
        std::array<walk_counter, threads_max> counters;
        std::atomic<std::size_t> counters_used{0};
        std::mutex mutex;
        std::deque<std::array<Node, batch>> chunks;
        stack spare;

        walk_counter& claim() {
            const std::lock_guard holding(mutex);
            for (std::size_t i = 0; i != threads_max; ++i) {
                if (counters[i].is_taken.exchange(true, std::memory_order_relaxed)) continue;
                if (i >= counters_used.load(std::memory_order_relaxed))
                    counters_used.store(i + 1, std::memory_order_seq_cst);
                return counters[i];
            }
            ENSURE(false, "more threads than counters");
            return counters[0];
        }
        void fill(stack& wanting) {
            const std::lock_guard holding(mutex);
            if (spare.first == nullptr)
                for (Node& fresh : chunks.emplace_back())
                    spare.push(fresh);
            while (spare.first != nullptr and wanting.count < batch)
                wanting.push(spare.pop());
        }
        void drain(stack& full, std::size_t kept) {
            const std::lock_guard holding(mutex);
            while (full.count > kept)
                spare.push(full.pop());
        }
    };

    static global& shared() {
        static global all;
        return all;
    }

public:
    /// The nodes of one thread. Thread safety: that thread.
    class pool {
    public:
        pool() : counter_(shared().claim()) { seen_.reserve(threads_max); }
        ~pool() {
            while (waiting_.count != 0 or retired_.count != 0) {
                collect();
                std::this_thread::yield();
            }
            shared().drain(ready_, 0);
            counter_.is_taken.store(false, std::memory_order_relaxed);
        }
        pool(const pool&) = delete;
        pool& operator=(const pool&) = delete;

        /// Returns a node that no other thread knows. Not within a walk. Allocates: while the pools
        /// grow, at first.
        [[nodiscard]] Node& take() {
            if (ready_.first == nullptr) refill();
            return ready_.pop();
        }
        /// Returns a node that never was in a list, or that no thread can have reached.
        void release(Node& unused) noexcept { ready_.push(unused); }
        /// Returns a node that this thread has unlinked.
        void retire(Node& unlinked) noexcept { retired_.push(unlinked); }

    private:
        friend class walk;

        void refill() {
            collect();
            // If no thread walks, recently retired nodes are ready.
            if (ready_.first == nullptr) collect();
            while (ready_.first == nullptr and waiting_.count + retired_.count > waiting_max) {
                std::this_thread::yield();
                collect();
            }
            // Then the others unlink less than this one.
            if (ready_.count > 4 * batch) shared().drain(ready_, 2 * batch);
            if (ready_.first == nullptr) shared().fill(ready_);
        }

        // Makes the nodes ready that have waited long enough, and starts the wait of those retired
        // since.
        void collect() noexcept {
            if (waiting_.count != 0) {
                if (not has_passed()) return;
                while (waiting_.first != nullptr)
                    ready_.push(waiting_.pop());
            }
            waiting_ = std::exchange(retired_, {});
            look();
        }
        void look() noexcept {
            seen_.clear();
            const std::size_t used = shared().counters_used.load(std::memory_order_seq_cst);
            for (std::size_t i = 0; i != used; ++i)
                seen_.push_back(shared().counters[i].value.load(std::memory_order_seq_cst));
        }
        bool has_passed() const noexcept {
            for (std::size_t i = 0; i != seen_.size(); ++i) {
                // acquire: pairs with the release of store_even(); all reads of the walker came
                // before.
                const bool was_walking = seen_[i] % 2 == 1;
                if (was_walking and shared().counters[i].value.load(std::memory_order_acquire) == seen_[i])
                    return false;
            }
            return true;
        }

        walk_counter& counter_;
        stack ready_;
        stack waiting_;                    // since look()
        stack retired_;                    // after it
        std::vector<std::uint64_t> seen_;  // the counters at look()
    };

    /// While it exists, no node that this thread reaches through a list is reused. Not nested.
    class walk {
    public:
        explicit walk(pool& mine) noexcept : counter_(mine.counter_) { counter_.store_odd(); }
        ~walk() { counter_.store_even(); }
        walk(const walk&) = delete;
        walk& operator=(const walk&) = delete;

    private:
        walk_counter& counter_;
    };
};

}  // namespace sluice::bench::range_locks

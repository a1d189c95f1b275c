#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/base/ensure.hpp"

namespace sluice::io {

/// Memory for coroutine frames: lists of free blocks by size, allocated from one arena. Once warm,
/// a task costs no allocation; when the arena is used up, frames come from the heap, and are
/// counted.
///
/// A task's frame comes from the pool that is passed as an argument after std::allocator_arg
/// (`serve(std::allocator_arg, pool, …)`, first or after the object of a member function).
/// Otherwise it comes from the calling thread's pool, which a `frame_pool::use` sets, or else from
/// the heap. One pool per thread, set where the thread starts its loop, serves all tasks without an
/// argument.
///
/// Thread safety: belongs to the thread that first takes from it (ENSURE). A frame may end on
/// another thread, where resume_on() brought it: its block then returns through a lock-free list.
/// No frame may outlive its pool (ENSURE). Allocates: the arena; and frames that do not fit.
/// Complexity: O(1).
///
/// Invariants:
///   1. A block of the arena never changes its size class; it is in use, in `free_` of its class,
///      or in `returned_`.
class frame_pool {
public:
    /// Larger frames come from the heap: a frame of that size holds a buffer
    /// that belongs elsewhere.
    static constexpr std::size_t block_bytes_max = 4096;
    static constexpr std::size_t block_step_bytes = 64;

    struct counters {
        std::size_t live = 0;              ///< frames in use, wherever they are from
        std::size_t live_max = 0;          ///< the most there were
        std::size_t heap_frames = 0;       ///< how often a frame came from the heap
        std::size_t arena_bytes_used = 0;  ///< split into blocks, in use or free
    };

    /// Uses the caller's memory, which outlives the pool.
    explicit frame_pool(std::span<std::byte> arena) noexcept;
    /// Uses its own memory. If there is none, all frames come from the heap, which `heap_frames`
    /// counts.
    explicit frame_pool(std::size_t arena_bytes) noexcept;
    frame_pool(const frame_pool&) = delete;
    frame_pool& operator=(const frame_pool&) = delete;
    ~frame_pool();

    /// Returns the counts so far. Owner's thread only.
    [[nodiscard]] counters statistics() noexcept;

    /// While it exists, frames of tasks called on this thread come from `pool`
    /// (null: the heap). Nests.
    class use {
    public:
        explicit use(frame_pool& pool) noexcept : use(&pool) {}
        explicit use(frame_pool* pool) noexcept : before_(current_) { current_ = pool; }
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        ~use() { current_ = before_; }

    private:
        frame_pool* before_;
    };

    /// Returns the calling thread's pool; null: the heap.
    [[nodiscard]] static frame_pool* current() noexcept { return current_; }

    /// For promise types: returns a frame from `pool` (null: the heap), or frees it, from any
    /// thread. Never null: a program out of memory stops.
    [[nodiscard]] static void* take_frame(frame_pool* pool, std::size_t bytes) noexcept;
    static void release_frame(void* frame, std::size_t bytes) noexcept;

private:
    struct block {
        block* next;
        std::size_t bytes;  // only in `returned_`
    };
    static constexpr std::size_t classes = block_bytes_max / block_step_bytes + 1;

    static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        return (bytes + block_step_bytes - 1) / block_step_bytes;
    }
    void count_live() noexcept {
        if (++counters_.live > counters_.live_max) counters_.live_max = counters_.live;
    }
    [[nodiscard]] void* take(std::size_t bytes) noexcept;
    [[nodiscard]] void* acquire_slow_path(std::size_t bytes) noexcept;
    void release(void* memory, std::size_t bytes) noexcept;
    void recycle(void* memory, std::size_t bytes) noexcept;
    void drain_returned() noexcept;
    [[nodiscard]] bool is_owner() const noexcept { return owner_ == &thread_mark_; }
    [[nodiscard]] bool is_of_arena(const void* memory) const noexcept;

    static inline thread_local constinit frame_pool* current_ = nullptr;
    // Its address identifies the thread.
    static inline thread_local constinit char thread_mark_ = 0;

    // Belongs to the owner.
    std::array<block*, classes> free_{};
    const void* owner_ = nullptr;
    counters counters_;
    std::unique_ptr<std::byte[]> own_arena_;
    std::span<std::byte> arena_;
    std::size_t arena_used_ = 0;

    // Written by threads that end frames which began on the owner's.
    std::atomic<block*> returned_{nullptr};
};

/// A base for promise types: their coroutines' frames come from a frame_pool, as described there.
class pooled_frame {
public:
    static void* operator new(std::size_t bytes) noexcept {
        return frame_pool::take_frame(frame_pool::current(), bytes);
    }
    template <class... Arguments>
    static void* operator new(std::size_t bytes, std::allocator_arg_t, frame_pool& pool,
                              const Arguments&...) noexcept {
        return frame_pool::take_frame(&pool, bytes);
    }
    // Member functions and lambdas: their object comes first.
    template <class Object, class... Arguments>
    static void* operator new(std::size_t bytes, const Object&, std::allocator_arg_t, frame_pool& pool,
                              const Arguments&...) noexcept {
        return frame_pool::take_frame(&pool, bytes);
    }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        frame_pool::release_frame(frame, bytes);
    }

protected:
    pooled_frame() noexcept = default;
    ~pooled_frame() = default;
};

// -------------------------------------------------------------------------------------------------

inline void* frame_pool::take(std::size_t bytes) noexcept {
    const std::size_t size_class = class_of(bytes);
    if (is_owner() and size_class < classes and free_[size_class] != nullptr) [[likely]] {
        block* const reused = free_[size_class];
        free_[size_class] = reused->next;
        count_live();
        return reused;
    }
    return acquire_slow_path(bytes);
}

inline void frame_pool::release(void* memory, std::size_t bytes) noexcept {
    if (is_owner()) [[likely]] {
        recycle(memory, bytes);
        return;
    }
    block* const back = new (memory) block{.next = returned_.load(std::memory_order_relaxed), .bytes = bytes};
    // release: the block's contents; pairs with the acquire in drain_returned(). A
    // failure only reloads.
    while (not returned_.compare_exchange_weak(back->next, back, std::memory_order_release,
                                               std::memory_order_relaxed)) {}
}

}  // namespace sluice::io

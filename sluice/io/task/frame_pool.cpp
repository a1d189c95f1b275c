#include "sluice/io/task/frame_pool.hpp"

#include <cstring>
#include <functional>
#include <new>

namespace sluice::io {
namespace {

// A pointer to its pool follows every frame, so that the thread that ends it knows where it
// belongs. It follows the frame because in front it would have to be padded to the alignment of the
// frame.
constexpr std::size_t offset_of_pool(std::size_t frame_bytes) noexcept {
    return (frame_bytes + alignof(frame_pool*) - 1) / alignof(frame_pool*) * alignof(frame_pool*);
}
constexpr std::size_t with_pool(std::size_t frame_bytes) noexcept {
    return offset_of_pool(frame_bytes) + sizeof(frame_pool*);
}

void* from_heap(std::size_t bytes) noexcept {
    void* const memory = ::operator new(bytes, std::nothrow);
    ENSURE(memory != nullptr, "out of memory for a coroutine frame");
    return memory;
}

std::span<std::byte> aligned(std::span<std::byte> arena) noexcept {
    void* start = arena.data();
    std::size_t left = arena.size();
    if (std::align(frame_pool::block_step_bytes, frame_pool::block_step_bytes, start, left) == nullptr)
        return {};
    return {static_cast<std::byte*>(start), left};
}

}  // namespace

frame_pool::frame_pool(std::span<std::byte> arena) noexcept : arena_(aligned(arena)) {}

frame_pool::frame_pool(std::size_t arena_bytes) noexcept
    : own_arena_(new(std::nothrow) std::byte[arena_bytes]),
      arena_(own_arena_ != nullptr ? aligned({own_arena_.get(), arena_bytes}) : std::span<std::byte>()) {}

frame_pool::~frame_pool() {
    drain_returned();
    ENSURE(counters_.live == 0, "a frame pool is destroyed before the tasks whose frames are in it");
}

frame_pool::counters frame_pool::statistics() noexcept {
    drain_returned();
    counters now = counters_;
    now.arena_bytes_used = arena_used_;
    return now;
}

void* frame_pool::take_frame(frame_pool* pool, std::size_t bytes) noexcept {
    const std::size_t whole = with_pool(bytes);
    auto* const memory = static_cast<std::byte*>(pool != nullptr ? pool->take(whole) : from_heap(whole));
    std::memcpy(memory + offset_of_pool(bytes), &pool, sizeof pool);
    return memory;
}

void frame_pool::release_frame(void* frame, std::size_t bytes) noexcept {
    frame_pool* pool = nullptr;
    std::memcpy(&pool, static_cast<std::byte*>(frame) + offset_of_pool(bytes), sizeof pool);
    if (pool != nullptr) {
        pool->release(frame, with_pool(bytes));
    } else {
        ::operator delete(frame);
    }
}

void* frame_pool::acquire_slow_path(std::size_t bytes) noexcept {
    if (owner_ == nullptr) owner_ = &thread_mark_;
    ENSURE(is_owner(), "a frame pool belongs to one thread: give each its own");
    ENSURE(arena_used_ <= arena_.size(), "more of the arena is used than there is");
    drain_returned();
    count_live();
    const std::size_t size_class = class_of(bytes);
    if (size_class < classes) {
        if (block* const reused = free_[size_class]; reused != nullptr) {
            free_[size_class] = reused->next;
            return reused;
        }
        const std::size_t size = size_class * block_step_bytes;
        if (size <= arena_.size() - arena_used_) {
            std::byte* const cut = arena_.data() + arena_used_;
            arena_used_ += size;
            return cut;
        }
    }
    ++counters_.heap_frames;
    return from_heap(bytes);
}

bool frame_pool::is_of_arena(const void* memory) const noexcept {
    // std::less orders any two pointers; < only those into one array.
    const std::less<const void*> before;
    return not before(memory, arena_.data()) and before(memory, arena_.data() + arena_.size());
}

void frame_pool::recycle(void* memory, std::size_t bytes) noexcept {
    ENSURE(counters_.live > 0);
    --counters_.live;
    if (not is_of_arena(memory)) {
        ::operator delete(memory);
        return;
    }
    ENSURE(class_of(bytes) < classes, "the arena has no blocks of this size");
    block*& head = free_[class_of(bytes)];
    head = new (memory) block{.next = head, .bytes = bytes};
}

void frame_pool::drain_returned() noexcept {
    // relaxed: only a check, so that the usual case costs no exchange.
    if (returned_.load(std::memory_order_relaxed) == nullptr) return;
    // acquire: the contents of the blocks; pairs with the release in release(). Taking the whole
    // list at once makes the list safe without counters: no block is returned while it could be
    // popped.
    block* back = returned_.exchange(nullptr, std::memory_order_acquire);
    while (back != nullptr) {
        block* const next = back->next;
        recycle(back, back->bytes);
        back = next;
    }
}

}  // namespace sluice::io

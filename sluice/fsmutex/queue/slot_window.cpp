#include "sluice/fsmutex/queue/slot_window.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"

namespace sluice::fsmutex {
namespace {

// Mapped at once, so that the next pages take no system call.
constexpr std::uint64_t mapping_bytes = 1U << 20;

}  // namespace

slot_window::~slot_window() {
    unmap();
}

void slot_window::unmap() noexcept {
    guard_ = fault_guard();
    if (memory_ != nullptr) ::munmap(std::exchange(memory_, nullptr), mapping_bytes);
}

std::uint64_t slot_window::page_of(std::uint64_t offset) noexcept {
    return offset / queue_format::page_bytes * queue_format::page_bytes;
}

void slot_window::open(int descriptor, std::uint64_t place) noexcept {
    const std::uint64_t begin = place / mapping_bytes * mapping_bytes;
    page_ = page_of(place);
    if (memory_ != nullptr and begin == begin_ and is_cut_ == 0) return;
    unmap();
    if (not map(descriptor, begin)) close();
}

bool slot_window::map(int descriptor, std::uint64_t begin) noexcept {
    void* const memory =
        ::mmap(nullptr, mapping_bytes, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(begin));
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(memory);
    begin_ = begin;
    is_cut_ = 0;
    auto guard = fault_guard::over(std::span(memory_, mapping_bytes), is_cut_);
    if (guard)
        guard_ = *std::move(guard);
    else
        unmap();
    return guard.has_value();
}

bool slot_window::copy(std::uint64_t offset, std::span<std::byte> into) const noexcept {
    ENSURE(covers(offset) and page_ + queue_format::page_bytes - offset >= into.size());
    std::memcpy(into.data(), memory_ + (offset - begin_), into.size());
    // Pairs with the fence of queue_file::erase(): a reader that finds a slot free sees the earlier
    // writes of its owner.
    std::atomic_thread_fence(std::memory_order_acquire);
    return is_cut_ == 0;
}

std::optional<std::uint64_t> slot_window::word_at(std::uint64_t offset) const noexcept {
    if (not covers(offset)) return std::nullopt;
    auto& word = *reinterpret_cast<std::uint64_t*>(memory_ + (offset - begin_));
    // relaxed: a hint; a caller that acts on it reads the slot.
    return std::atomic_ref(word).load(std::memory_order_relaxed);
}

}  // namespace sluice::fsmutex

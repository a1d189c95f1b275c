#include "sluice/fsmutex/slot_window.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/queue_format.hpp"

namespace sluice::fsmutex {
namespace {

// Mapped at once, so that the next pages take no system call.
constexpr std::uint64_t mapping_bytes = 1U << 20;

}  // namespace

slot_window::~slot_window() {
    unmap();
}

void slot_window::unmap() noexcept {
    if (memory_ != nullptr) ::munmap(std::exchange(memory_, nullptr), mapping_bytes);
}

std::uint64_t slot_window::page_of(std::uint64_t offset) noexcept {
    return offset / queue_format::page_bytes * queue_format::page_bytes;
}

void slot_window::open(int descriptor, std::uint64_t place) noexcept {
    const std::uint64_t begin = place / mapping_bytes * mapping_bytes;
    page_ = page_of(place);
    if (memory_ != nullptr and begin == begin_) return;
    unmap();
    void* const memory =
        ::mmap(nullptr, mapping_bytes, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(begin));
    if (memory == MAP_FAILED) return close();
    memory_ = static_cast<std::byte*>(memory);
    begin_ = begin;
}

void slot_window::copy(std::uint64_t offset, std::span<std::byte> into) const noexcept {
    ENSURE(covers(offset) and page_ + queue_format::page_bytes - offset >= into.size());
    std::memcpy(into.data(), memory_ + (offset - begin_), into.size());
    // Pairs with the fence of queue_file::erase(): who finds a slot free sees what its owner did before.
    std::atomic_thread_fence(std::memory_order_acquire);
}

std::optional<std::uint64_t> slot_window::word_at(std::uint64_t offset) const noexcept {
    if (not covers(offset)) return std::nullopt;
    auto& word = *reinterpret_cast<std::uint64_t*>(memory_ + (offset - begin_));
    // relaxed: a hint; who acts on it reads the slot.
    return std::atomic_ref(word).load(std::memory_order_relaxed);
}

}  // namespace sluice::fsmutex

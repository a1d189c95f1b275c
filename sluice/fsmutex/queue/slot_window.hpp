#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/fsmutex/queue/fault_guard.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. The page of a queue file with a request's own slot, mapped for reading: a
/// waiter polls the slots just before its own without a system call.
///
/// It maps only that page: while the page has a live slot, no other process frees its block. A read
/// of a hole would have to allocate a block, and the volume may be full. Only for a file on this
/// host: elsewhere the writes of others may not become visible.
///
/// Another process can truncate the file at any moment. The first access to a page that is gone
/// then replaces the map by zeros, which look like free slots, and copy() returns false until the
/// next open().
/// Signals: as fault_guard. Thread safety: one thread.
class slot_window {
public:
    slot_window() noexcept = default;
    slot_window(const slot_window&) = delete;
    slot_window& operator=(const slot_window&) = delete;
    ~slot_window();

    /// Covers, from now on, the page of the slot at `place`, if it can be mapped and guarded. Makes
    /// two system calls for every mebibyte by which the file grows.
    void open(int descriptor, std::uint64_t place) noexcept;
    /// Covers nothing, because the slot is about to be released.
    void close() noexcept { page_ = nothing; }

    [[nodiscard]] bool covers(std::uint64_t offset) const noexcept { return page_of(offset) == page_; }
    /// Returns the offset of the page.
    [[nodiscard]] static std::uint64_t page_of(std::uint64_t offset) noexcept;
    /// Copies bytes of the page, which is covered; they may be torn by a concurrent write. Returns
    /// false if the file was truncated, and then they are meaningless.
    [[nodiscard]] bool copy(std::uint64_t offset, std::span<std::byte> into) const noexcept;
    /// Returns eight bytes at a multiple of eight, by one load; zero if the file was truncated;
    /// std::nullopt if they are not covered.
    [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t offset) const noexcept;

private:
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};

    [[nodiscard]] bool map(int descriptor, std::uint64_t begin) noexcept;
    void unmap() noexcept;

    std::byte* memory_ = nullptr;
    fault_guard guard_;
    volatile std::uint32_t is_cut_ = 0;  // written by the handler of SIGBUS, in this thread
    std::uint64_t begin_ = 0;            // the file offset of the map
    std::uint64_t page_ = nothing;
};

}  // namespace sluice::fsmutex

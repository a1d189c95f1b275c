#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::vfs {

/// The file-system call that a thread currently executes on its loop, if any. A watchdog reads it
/// to detect calls that do not end. Atomic: begin() and end() belong to one thread, which owns the
/// slot; now() is for any thread. Allocates: nothing.
class inline_call_slot {
public:
    struct running_call {
        std::uint64_t number = 0;  // counts the thread's calls; 0: no call is running
        std::uint32_t domain = 0;  // fs_domain::number()
        [[nodiscard]] friend bool operator==(const running_call&, const running_call&) noexcept = default;
    };

    /// Returns the slot of the calling thread, which exists as long as the thread.
    [[nodiscard]] static inline_call_slot& of_this_thread() noexcept;

    /// Returns the current call. If two results with some time between them are equal, the call has
    /// not ended.
    [[nodiscard]] running_call now() const noexcept {
        const std::uint64_t word = word_.load(std::memory_order_relaxed);
        return {.number = word >> domain_bits, .domain = static_cast<std::uint32_t>(word & domain_mask)};
    }

    /// Returns the number of the call, which starts at 1. Numbers repeat after 2^40 calls.
    std::uint64_t begin(std::uint32_t domain) noexcept {
        // relaxed: the watchdog compares words, which do not order other accesses.
        word_.store(++begun_ << domain_bits | (domain & domain_mask), std::memory_order_relaxed);
        return begun_;
    }
    void end() noexcept { word_.store(0, std::memory_order_relaxed); }

private:
    static constexpr unsigned domain_bits = 24;
    static constexpr std::uint64_t domain_mask = (1U << domain_bits) - 1;

    std::atomic<std::uint64_t> word_{0};
    std::uint64_t begun_ = 0;  // used by the owner only
};

}  // namespace sluice::vfs

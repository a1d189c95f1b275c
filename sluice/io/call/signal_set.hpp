#pragma once

#include <cstdint>
#include <initializer_list>
#include <thread>

namespace sluice::io {

/// A set of signal numbers (SIGINT and so on), 1 to 64. Thread safety: a value.
class signal_set {
public:
    constexpr signal_set() noexcept = default;
    /// Numbers outside of 1 to 64 make the set invalid.
    constexpr signal_set(std::initializer_list<int> numbers) noexcept {
        for (const int number : numbers)
            insert(number);
    }
    constexpr void insert(int number) noexcept {
        const bool exists = number >= 1 and number <= 64;
        if (exists) bits_ |= std::uint64_t{1} << (number - 1);
        is_valid_ = is_valid_ and exists;
    }
    [[nodiscard]] constexpr bool contains(int number) const noexcept {
        return number >= 1 and number <= 64 and (bits_ >> (number - 1) & 1) != 0;
    }
    [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == 0; }
    [[nodiscard]] constexpr bool is_valid() const noexcept { return is_valid_; }
    /// Returns the set as a mask; bit n - 1 is signal n.
    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] static constexpr signal_set from_bits(std::uint64_t bits) noexcept {
        signal_set made;
        made.bits_ = bits;
        return made;
    }
    [[nodiscard]] friend constexpr bool operator==(signal_set, signal_set) noexcept = default;

private:
    std::uint64_t bits_ = 0;
    bool is_valid_ = true;
};

/// Returns the signals that a signal_source can receive: all except SIGKILL, SIGSTOP, those of
/// faults and those that the C library uses. A thread of the library is started with them blocked,
/// so that it takes none from a program that receives them.
[[nodiscard]] signal_set receivable_signals() noexcept;

/// Blocks signals for the calling thread, and for the threads it starts from then on, which inherit
/// its mask. The destructor unblocks those that were not blocked before. Thread safety: destroyed
/// by the thread that created it (ENSURE). Allocates: nothing.
class blocked_signals {
public:
    explicit blocked_signals(signal_set which) noexcept;
    blocked_signals(const blocked_signals&) = delete;
    blocked_signals& operator=(const blocked_signals&) = delete;
    ~blocked_signals();

    /// Returns the signals that this has blocked: those of the set that were not blocked before.
    [[nodiscard]] signal_set newly_blocked() const noexcept { return newly_; }

private:
    signal_set newly_;
    std::thread::id thread_;
};

// --- internal to io

inline constexpr int signal_numbers_max = 64;

/// Returns the signals that the calling thread blocks.
[[nodiscard]] signal_set blocked_by_this_thread() noexcept;

/// Returns whether a signal_source can receive the signal.
[[nodiscard]] bool can_be_received(int signal_number) noexcept;

/// Opens a signalfd(2) that does not wait. Returns the descriptor, or -1 with the cause in errno.
[[nodiscard]] int open_signal_descriptor(signal_set which) noexcept;

}  // namespace sluice::io

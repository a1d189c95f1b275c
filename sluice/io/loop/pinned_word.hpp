#pragma once

#include <cstdint>
#include <utility>

namespace sluice::io {

/// The events of an operation while one thread is in a call for it, outside of the multiplexer's
/// lock: the operation stays where it is, and that thread handles the events after its call. It is
/// separate from the multiplexer, so that a test can explore every order of events.
///
/// Thread safety: all members are guarded by the multiplexer's lock.
///
/// Invariants:
///   1. A thread that finds the operation pinned records the event here and does nothing else.
///   2. The thread that has pinned it takes the records in the same critical section in which it
///      unpins it.
class pinned_word {
public:
    /// `word` is the operation's own; 0 while it is pinned without an event.
    explicit pinned_word(std::uint64_t& word) noexcept : word_(word) {}

    void record_completion() noexcept { word_ |= is_complete; }
    void record_cancellation() noexcept { word_ |= end_is_due; }

    enum class step : unsigned char {
        nothing,  ///< it continues
        finish,   ///< its outcome is known
        end,      ///< it has been cancelled, and must be ended early
    };
    /// Takes the records: the step after the call has returned. An outcome takes precedence over a
    /// cancellation.
    [[nodiscard]] step take() noexcept {
        const std::uint64_t notes = std::exchange(word_, 0);
        if ((notes & is_complete) != 0) return step::finish;
        return (notes & end_is_due) != 0 ? step::end : step::nothing;
    }

private:
    static constexpr std::uint64_t is_complete = 1;
    static constexpr std::uint64_t end_is_due = 2;

    std::uint64_t& word_;
};

}  // namespace sluice::io

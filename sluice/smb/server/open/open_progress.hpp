#pragma once

#include <cstdint>

#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

/// The progress of an open.
enum class open_phase : std::uint8_t {
    making,  ///< its CREATE is in progress
    live,    ///< it can be named
    ended,   ///< it cannot be named any more; final
};

/// The phase of an open, and whether a repeated CREATE may still return it.
///
/// Invariants:
///   1. The phase goes from `making` to `live` to `ended`, or from `making` to `ended`. One caller
///   of end() does not get `ended`.
///   2. An open that has ended does not stay eligible: if both begin at the same time, either
///   begin_eligibility() returns false, or the end_eligibility() after end() returns true.
/// Atomic: any thread. Atomics: sync::real_atomics, or those that explore the interleavings.
template <class Atomics>
class basic_open_progress {
public:
    // acquire: a thread that finds it live sees what its CREATE has set; pairs with the releases
    // below. seq_cst: see share::has_live_feed().
    [[nodiscard]] open_phase phase() const noexcept { return phase_.load(std::memory_order_seq_cst); }
    /// Returns false if it has ended before.
    [[nodiscard]] bool go_live() noexcept {
        open_phase before = open_phase::making;
        return phase_.compare_exchange_strong(before, open_phase::live, std::memory_order_seq_cst,
                                              std::memory_order_seq_cst);
    }
    /// Returns the phase before.
    [[nodiscard]] open_phase end() noexcept {
        return phase_.exchange(open_phase::ended, std::memory_order_seq_cst);
    }

    /// Returns false if it has ended: the caller calls end_eligibility().
    [[nodiscard]] bool begin_eligibility() noexcept {
        // seq_cst, both: this finds the end, or the end finds that it is eligible.
        is_eligible_.store(true, std::memory_order_seq_cst);
        return phase_.load(std::memory_order_seq_cst) != open_phase::ended;
    }
    /// Returns whether it was eligible; then the caller removes it from the table, once.
    [[nodiscard]] bool end_eligibility() noexcept {
        return is_eligible_.load(std::memory_order_seq_cst) and
               is_eligible_.exchange(false, std::memory_order_seq_cst);
    }

private:
    typename Atomics::template atomic<open_phase> phase_{open_phase::making};
    typename Atomics::template atomic<bool> is_eligible_{false};
};

using open_progress = basic_open_progress<sync::real_atomics>;

}  // namespace sluice::smb::server

#pragma once

#include <cstdint>

#include "sluice/base/ensure.hpp"

// Defined to 1 to check the order of mutexes in every build of the project that searches for
// errors: debug, sanitizers, simulation.
#if not defined(SLUICE_CHECKS_MUTEXES)
#if not defined(NDEBUG)
#define SLUICE_CHECKS_MUTEXES 1
#else
#define SLUICE_CHECKS_MUTEXES 0
#endif
#endif

namespace sluice {

/// The ranks of the mutexes that the calling thread holds, as bits.
///
/// Invariant: a thread acquires ranks in ascending order, and at most one mutex of a rank; so there
/// is no cycle of threads that wait for mutexes. Thread safety: each thread has its own. Allocates:
/// nothing.
class held_mutexes {
public:
    static constexpr unsigned ranks_max = 32;

    /// Records that the thread is about to lock a mutex of this rank. Stops the program if it holds
    /// one of the same or a greater rank.
    static void add(unsigned rank) noexcept {
        ENSURE(rank < ranks_max and ranks_ >> rank == 0, "mutexes are locked in ascending order of ranks");
        ranks_ |= 1U << rank;
    }
    static void remove(unsigned rank) noexcept {
        ENSURE((ranks_ >> rank & 1U) != 0, "a thread unlocks a mutex that it holds");
        ranks_ &= ~(1U << rank);
    }
    [[nodiscard]] static bool none() noexcept { return ranks_ == 0; }

    /// Stops the program if the thread holds a mutex: before a coroutine suspends, and before a
    /// file-system call. Does nothing in builds without these checks.
    static void ensure_none() noexcept {
        if constexpr (SLUICE_CHECKS_MUTEXES != 0)
            ENSURE(none(), "no mutex is held across a suspension or a file-system call");
    }

private:
    static inline thread_local constinit std::uint32_t ranks_ = 0;
};

}  // namespace sluice

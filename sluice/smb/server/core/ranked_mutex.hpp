#pragma once

#include <cstdint>

#include "sluice/base/held_mutexes.hpp"
#include "sluice/base/mutex.hpp"
#include "sluice/sync/atomics.hpp"
#include "sluice/sync/small_mutex.hpp"

namespace sluice::smb::server {

/// The ranks of the server's mutexes. A thread holds at most one of each rank, and
/// locks them in this order.
enum class lock_rank : std::uint8_t { pipe, registry, session, open, file, client, leaf, memory };

/// Sees each mutex that a thread is about to lock, for tests that count them. Only in builds that
/// check the order of mutexes.
///
/// Thread safety: any thread; `locking` is set before the threads begin, and null outside such
/// tests.
struct lock_observer {
    static inline constinit void (*locking)(lock_rank rank, const void* which) noexcept = nullptr;

    static void record(lock_rank rank, const void* which) noexcept {
        if (locking != nullptr) [[unlikely]]
            locking(rank, which);
    }
};

/// A mutex with a place in the order of the server's mutexes. It is not recursive. `Checked` builds
/// stop the program if a thread locks out of order, or holds it when a coroutine suspends or a
/// file-system call begins.
///
/// Thread safety: any thread. Allocates: nothing. Blocks: while another thread holds it. Without
/// checks it has the four bytes and the cost of sync::basic_small_mutex: one compare-and-swap and
/// one exchange, as std::mutex.
template <lock_rank Rank, bool Checked>
class SLUICE_CAPABILITY("mutex") basic_ranked_mutex {
public:
    void lock() noexcept SLUICE_ACQUIRE() {
        if constexpr (Checked) {
            held_mutexes::add(static_cast<unsigned>(Rank));
            lock_observer::record(Rank, this);
        }
        of_.lock();
    }
    void unlock() noexcept SLUICE_RELEASE() {
        of_.unlock();
        if constexpr (Checked) held_mutexes::remove(static_cast<unsigned>(Rank));
    }

private:
    sync::basic_small_mutex<sync::real_atomics> of_;
};

template <lock_rank Rank>
using ranked_mutex = basic_ranked_mutex<Rank, SLUICE_CHECKS_MUTEXES != 0>;

static_assert(sizeof(basic_ranked_mutex<lock_rank::leaf, true>) == sizeof(std::uint32_t));

}  // namespace sluice::smb::server

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::fsmutex::limits {

/// Entities of one request that need no memory from the heap.
inline constexpr std::size_t entities_inline = 16;

/// Open file descriptions a mutex keeps for the next requests; more are opened when more are outstanding.
inline constexpr std::size_t pooled_descriptions_max = 16;

/// Threads that wait for locks of the kernel on behalf of requests without a thread, for each mutex: at most,
/// and kept for the next ones. A request beyond that polls.
inline constexpr std::size_t lock_threads_max = 64;
inline constexpr std::size_t idle_lock_threads_max = 4;

/// Pauses of a waiter whom the kernel cannot wake: they double from the first to the second, and end with the
/// deadline. The second bounds how late it is noticed that something is free, and how much processor time a
/// wait takes: a look costs some 50 us, for sleeping and waking up.
inline constexpr std::chrono::nanoseconds pause_min = std::chrono::microseconds(50);
inline constexpr std::chrono::nanoseconds pause_max = std::chrono::milliseconds(16);
/// The second, where a look is a dozen messages to a server: eight who look more often keep it so busy that
/// nobody comes to unlock.
inline constexpr std::chrono::nanoseconds pause_of_many_messages_max = std::chrono::milliseconds(96);

/// How often a lock file that vanishes while it is opened is created or opened again. After that, its state
/// counts as contention.
inline constexpr unsigned vanished_file_attempts_max = 16;
/// The same of a mutex file, before opening it fails. Each attempt fails only because another process opened
/// and closed the mutex in between, which happens tens of times in a row while many processes do nothing
/// else.
inline constexpr unsigned vanished_mutex_attempts_max = 100'000;

/// Files that a process has mapped at once, each by a mutex. Opening another one fails with ENOMEM.
inline constexpr std::size_t guarded_maps_max = 4096;

/// How long an operation waits for the latch of a mapped mutex, which its holder has for less than a
/// microsecond if it runs. Then it fails with EBUSY: the holder is stopped, or the latch is forged.
inline constexpr std::chrono::seconds latch_wait_max{10};

}  // namespace sluice::fsmutex::limits

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::fsmutex::limits {

/// Entities of one request that are stored without an allocation.
inline constexpr std::size_t entities_inline = 16;

/// Open file descriptions that a mutex keeps for later requests. It opens more while more requests
/// are outstanding.
inline constexpr std::size_t pooled_descriptions_max = 16;

/// Largest number of threads, for each mutex, that wait for kernel locks on behalf of requests
/// without a thread. They are kept for later requests. A request beyond the limit polls.
inline constexpr std::size_t lock_threads_max = 64;
inline constexpr std::size_t idle_lock_threads_max = 4;

/// Pauses of a waiter that the kernel cannot wake. They double from the first to the second, and
/// end with the deadline. The second bounds how late the waiter notices a release, and the CPU time
/// of a wait: a poll sleeps and wakes up.
inline constexpr std::chrono::nanoseconds pause_min = std::chrono::microseconds(50);
inline constexpr std::chrono::nanoseconds pause_max = std::chrono::milliseconds(16);
/// The second, where a poll sends a dozen messages to a server. Eight waiters that poll more often
/// keep it so busy that the holder cannot unlock.
inline constexpr std::chrono::nanoseconds pause_of_many_messages_max = std::chrono::milliseconds(96);

/// How often a lock file that vanishes while it is opened is created or opened again. After that,
/// the operation treats it as contended.
inline constexpr unsigned vanished_file_attempts_max = 16;
/// The same for a mutex file, before opening it fails. An attempt fails only because another
/// process opened and closed the mutex in between. That happens tens of times in a row while many
/// processes only open and close it.
inline constexpr unsigned vanished_mutex_attempts_max = 100'000;

/// Files that a process has mapped at once, each by a mutex. Opening another one fails with ENOMEM.
inline constexpr std::size_t guarded_maps_max = 4096;

/// How long an operation waits for the latch of a mapped mutex, which a running holder has for less
/// than a microsecond. Then it fails with EBUSY: the holder is stopped, or the latch is forged.
inline constexpr std::chrono::seconds latch_wait_max{10};

}  // namespace sluice::fsmutex::limits

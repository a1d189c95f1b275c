#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::fsmutex::limits {

/// Entities of one request that need no memory from the heap.
inline constexpr std::size_t entities_inline = 16;

/// Open file descriptions a mutex keeps for the next requests; more are opened when more are outstanding.
inline constexpr std::size_t pooled_descriptions_max = 16;

/// Pauses of a waiter whom the kernel cannot wake: they double from the first to the second, and end with the
/// deadline. The second bounds how late it is noticed that something is free, and how much processor time a
/// wait takes: a look costs some 50 us, for sleeping and waking up.
inline constexpr std::chrono::nanoseconds pause_min = std::chrono::microseconds(50);
inline constexpr std::chrono::nanoseconds pause_max = std::chrono::milliseconds(16);
/// The second, where a look is a dozen messages to a server: eight who look more often keep it so busy that
/// nobody comes to unlock.
inline constexpr std::chrono::nanoseconds pause_of_many_messages_max = std::chrono::milliseconds(96);

/// How often a file that vanishes while it is opened is created or opened again. After that, the state of an
/// entity counts as contention, and opening a mutex file fails.
inline constexpr unsigned vanished_file_attempts_max = 16;

}  // namespace sluice::fsmutex::limits

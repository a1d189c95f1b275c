#pragma once

#include <cstddef>
#include <cstdint>

// Every limit on the resources that an image may consume. An image that exceeds one gets an error
// that names it.

namespace sluice::fat::limits {

/// Partitions read from one table. Linux stops at 256 as well; chains of logical partitions may be
/// cyclic.
inline constexpr std::size_t partitions_max = 256;

/// Bytes of one entry of a GPT, and of the whole array. Partitioning tools write 128 entries of 128
/// bytes.
inline constexpr std::uint32_t gpt_entry_bytes_max = 4096;
inline constexpr std::uint64_t gpt_array_bytes_max = 1 << 20;

/// Slots of a directory: FAT's own limit, 2 MiB.
inline constexpr std::uint32_t directory_slots_max = 65'536;

/// Problems listed by a check; further ones are only counted. Longer paths in reports are truncated
/// at the front.
inline constexpr std::size_t problems_max = 10'000;
inline constexpr std::size_t reported_path_bytes_max = 1024;

/// Worker threads that wait for one served image, so that no loop has to wait.
inline constexpr std::size_t threads_max = 16;

/// Upper bound of the checks of a repair, each with one stage of remedies.
inline constexpr unsigned repair_rounds = 64;

}  // namespace sluice::fat::limits

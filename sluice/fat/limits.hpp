#pragma once

#include <cstddef>
#include <cstdint>

// Every bound of what an image may make us do. An image that exceeds one gets an error that names it.

namespace sluice::fat::limits {

/// Partitions read from one table. Linux stops at 256 as well; chains of logical ones may loop.
inline constexpr std::size_t partitions_max = 256;

/// Bytes of one entry of a GPT, and of the whole array: 128 by 128 is what everybody writes.
inline constexpr std::uint32_t gpt_entry_bytes_max = 4096;
inline constexpr std::uint64_t gpt_array_bytes_max = 1 << 20;

/// Slots of a directory: FAT's own limit, 2 MiB.
inline constexpr std::uint32_t directory_slots_max = 65'536;

/// Problems a check lists; more are counted. Paths in reports are cut to so many bytes, from the front.
inline constexpr std::size_t problems_max = 10'000;
inline constexpr std::size_t reported_path_bytes_max = 1024;

/// Threads that wait for one image that is served, so that no loop does.
inline constexpr std::size_t threads_max = 16;

/// Checks, each with one stage of remedies, a repair makes at most.
inline constexpr unsigned repair_rounds = 64;

}  // namespace sluice::fat::limits

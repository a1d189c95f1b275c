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

}  // namespace sluice::fat::limits

#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

// Pattern_V1, [MS-SMB2] 2.2.42.2.2: a run of one byte, at the start or the end of the data.

namespace sluice::smb::wire {

/// A run in a message.
struct pattern_payload {
    le8 pattern;       // 0
    le8 reserved1;     // 1
    le16 reserved2;    // 2
    le32 repetitions;  // 4
};
static_assert(sizeof(pattern_payload) == 8 and wire_type<pattern_payload>);

/// The number of equal bytes at the start of some data, and at the end, each counted once; 0 for a
/// run that is too short to be worth an element of its own.
struct byte_runs {
    std::size_t front = 0;
    std::size_t back = 0;
};

/// A shorter run takes more bytes as an element than it saves, or few less.
inline constexpr std::size_t pattern_bytes_min = 64;

/// Returns the runs of `data`. Complexity: linear in the result.
[[nodiscard]] byte_runs runs_of(bytes_view data) noexcept;

}  // namespace sluice::smb::wire

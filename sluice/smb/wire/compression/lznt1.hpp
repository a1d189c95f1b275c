#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// LZNT1, [MS-XCA] 2.5: chunks of 4096 bytes, each compressed or stored for itself. The more of a
// chunk precedes a match, the more of its two bytes has the distance, and the less its length.

namespace sluice::smb::wire::lznt1 {

/// The memory of a compressor. Reused, so that compression allocates nothing. Thread safety: one
/// thread.
struct work_area {
    static constexpr unsigned hash_bits = 12;
    /// One more than the last position of the bytes with that hash, 0 for none.
    std::array<std::uint32_t, 1U << hash_bits> last;
};

/// Compresses `in` into the first bytes of `out`, which do not overlap, and returns their number,
/// or std::nullopt if they do not fit: the caller makes `out` as large as a result is useful.
/// Returns std::nullopt also for more than 1 GiB. Allocates: nothing. Complexity: linear.
///
/// Invariant: decompress() of the result, with room for in.size() bytes, gives `in`.
[[nodiscard]] std::optional<std::size_t> compress(bytes_view in, mutable_bytes out, work_area& work) noexcept;

/// Decompresses untrusted `in` into `out`, which do not overlap: exactly out.size() bytes.
/// Errors: `truncated` (gives fewer bytes, or ends within an element), `too_long` (gives more),
/// `bad_value` (no chunk, a chunk of less than 4096 bytes before the last, a distance to before the
/// start of the chunk). Allocates: nothing. Complexity: linear in both.
///
/// Invariants:
///   1. Reads only `in` and bytes of `out` that it has written; writes only `out`.
///   2. After success, all of `in` was used, except an end mark of two zero bytes.
[[nodiscard]] decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept;

}  // namespace sluice::smb::wire::lznt1

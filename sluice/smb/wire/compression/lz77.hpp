#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Plain LZ77, [MS-XCA] 2.3 and 2.4: the fastest of the algorithms. Groups of 32 literals or matches
// follow a word of 32 bits, most significant first, which are 1 for matches. A match has two bytes
// with a distance of up to 8192 and a length of up to 9. Two longer ones after another share a byte
// for the next 4 bits of their lengths.

namespace sluice::smb::wire::lz77 {

/// The memory of a compressor. Reused, so that compression allocates nothing. Thread safety: one
/// thread.
struct work_area {
    static constexpr unsigned hash_bits = 13;
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
/// `bad_value` (a distance to before the first byte, an impossible length). Allocates: nothing.
/// Complexity: linear in both.
///
/// Invariants:
///   1. Reads only `in` and bytes of `out` that it has written; writes only `out`.
///   2. After success, all of `in` was used, except a last word of flags without elements.
[[nodiscard]] decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept;

}  // namespace sluice::smb::wire::lz77

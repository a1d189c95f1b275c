#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/compression/huffman_code.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// LZ77+Huffman, [MS-XCA] 2.1 and 2.2: the smallest results. Each block of 65536 bytes begins with
// the lengths of its codes (256 bytes). A symbol is a literal, or the length of a match and the
// number of bits of its distance, which follow.

namespace sluice::smb::wire::lz77_huffman {

inline constexpr std::size_t block_bytes = 65536;

/// The memory of a compressor. Reused, so that compression allocates nothing. Thread safety: one
/// thread.
struct work_area {
    static constexpr unsigned hash_bits = 14;
    /// One more than the last position of the bytes with that hash, 0 for none.
    std::array<std::uint32_t, 1U << hash_bits> last;
    /// The elements of a block: a literal; or a distance in the upper half, and a length less
    /// three.
    std::array<std::uint32_t, block_bytes> elements;
    symbol_counts counts;
    huffman_encoder codes;
};

/// Compresses `in` into the first bytes of `out`, which do not overlap, and returns their number,
/// or std::nullopt if they do not fit: the caller makes `out` as large as a result is useful.
/// Returns std::nullopt also for more than 1 GiB. Allocates: nothing. Complexity: linear.
///
/// Invariant: decompress() of the result, with room for in.size() bytes, gives `in`.
[[nodiscard]] std::optional<std::size_t> compress(bytes_view in, mutable_bytes out, work_area& work) noexcept;

/// Decompresses untrusted `in` into `out`, which do not overlap: exactly out.size() bytes.
/// Errors: `truncated` (gives fewer bytes, or ends within a block), `too_long` (gives more),
/// `bad_value` (codes that are not complete, a distance to before the first byte, an impossible
/// length). Allocates: nothing. Complexity: linear in both: each block but the last gives at least
/// 65536 bytes.
///
/// Invariants:
///   1. Reads only `in` and bytes of `out` that it has written; writes only `out`.
///   2. After success, all of `in` was used, including a symbol that marks the end. It may be
///      absent after a whole block.
[[nodiscard]] decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept;

}  // namespace sluice::smb::wire::lz77_huffman

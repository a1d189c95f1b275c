#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/base/bytes.hpp"

// The prefix codes of LZ77+Huffman, [MS-XCA] 2.1 and 2.2: 512 symbols with codes of 1 to 15 bits,
// of which the message has only the lengths. Shorter codes are smaller numbers, and among those of
// one length, the codes ascend with their symbols.

namespace sluice::smb::wire {

inline constexpr std::size_t huffman_symbols = 512;
inline constexpr unsigned huffman_bits_max = 15;
/// The lengths in a message: half a byte for each symbol, the lower half first.
inline constexpr std::size_t huffman_table_bytes = huffman_symbols / 2;

/// How often each symbol occurs.
using symbol_counts = std::array<std::uint32_t, huffman_symbols>;

/// The codes for a compressor. Thread safety: none.
class huffman_encoder {
public:
    /// Constructs a code for symbols that occur so often, two of them at least. Frequent symbols
    /// get short codes; a symbol that does not occur gets none. Invariant: the code is complete, so
    /// that a decoder accepts it. Complexity: O(n log n) in the symbols.
    void assign(const symbol_counts& counts) noexcept;

    [[nodiscard]] unsigned bits_of(std::size_t symbol) const noexcept { return bits_[symbol]; }
    [[nodiscard]] std::uint32_t code_of(std::size_t symbol) const noexcept { return codes_[symbol]; }
    void write_table(std::span<std::byte, huffman_table_bytes> to) const noexcept;

private:
    std::array<std::uint8_t, huffman_symbols> bits_{};
    std::array<std::uint16_t, huffman_symbols> codes_{};
};

/// The codes for a decompressor. Thread safety: none.
class huffman_decoder {
public:
    struct found {
        std::uint16_t symbol = 0;
        std::uint8_t bits = 0;  ///< at least 1
    };

    /// Reads the lengths of untrusted codes. Returns false unless each sequence of 15 bits begins
    /// with exactly one code. Complexity: constant.
    [[nodiscard]] bool read_table(std::span<const std::byte, huffman_table_bytes> from) noexcept;

    /// Returns the symbol at the front of 15 bits, after read_table() has returned true.
    [[nodiscard]] found decode(std::uint32_t next_15_bits) const noexcept {
        const found quick = quick_[next_15_bits >> (huffman_bits_max - quick_bits)];
        return quick.bits != 0 ? quick : decode_long(next_15_bits);
    }

private:
    static constexpr unsigned quick_bits = 10;

    [[nodiscard]] found decode_long(std::uint32_t next_15_bits) const noexcept;

    std::array<found, 1U << quick_bits> quick_;  // by the first bits; 0 bits: a longer code
    // By the length of codes: the 15 bits that follow the last of them, and how many symbols have
    // codes up to that length.
    std::array<std::uint32_t, huffman_bits_max + 1> code_ends_;
    std::array<std::uint16_t, huffman_bits_max + 1> symbol_ends_;
    std::array<std::uint16_t, huffman_symbols> symbols_;  // in the order of their codes
};

}  // namespace sluice::smb::wire

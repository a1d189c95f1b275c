#include "sluice/smb/wire/compression/huffman_code.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t whole = 1U << huffman_bits_max;  // all sequences of 15 bits

using length_counts = std::array<std::uint32_t, huffman_bits_max + 1>;

// Orders symbols that occur, the rarest first. Returns how many.
[[nodiscard]] std::size_t order_symbols(const symbol_counts& counts,
                                        std::array<std::uint16_t, huffman_symbols>& symbols) noexcept {
    std::size_t used = 0;
    for (std::size_t symbol = 0; symbol != huffman_symbols; ++symbol)
        if (counts[symbol] != 0) symbols[used++] = static_cast<std::uint16_t>(symbol);
    std::sort(symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(used),
              [&](std::uint16_t a, std::uint16_t b) {
                  return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
              });
    return used;
}

// A tree whose leaves are ordered by weight, built by joining the two lightest nodes that have no
// parent: the next leaf, or the next joined node, which come in the order of their weights as well.
class code_tree {
public:
    code_tree(const symbol_counts& counts, std::span<const std::uint16_t> symbols) noexcept
        : leaves_(symbols.size()) {
        for (std::size_t i = 0; i != leaves_; ++i)
            weights_[i] = counts[symbols[i]];
        for (end_ = leaves_; end_ != 2 * leaves_ - 1; ++end_) {
            const std::size_t first = take_lightest();
            const std::size_t second = take_lightest();
            weights_[end_] = weights_[first] + weights_[second];
            parents_[first] = parents_[second] = static_cast<std::uint16_t>(end_);
        }
    }

    // Returns how many leaves are at each depth; those below huffman_bits_max count there.
    [[nodiscard]] length_counts depths() const noexcept {
        std::array<std::uint16_t, nodes_max> depth_of{};
        length_counts depths{};
        for (std::size_t node = 2 * leaves_ - 2; node-- != 0;) {
            depth_of[node] = static_cast<std::uint16_t>(depth_of[parents_[node]] + 1);
            if (node < leaves_) ++depths[std::min<std::size_t>(depth_of[node], huffman_bits_max)];
        }
        return depths;
    }

private:
    static constexpr std::size_t nodes_max = 2 * huffman_symbols - 1;

    [[nodiscard]] std::size_t take_lightest() noexcept {
        const bool has_joined = next_joined() != end_;
        if (next_leaf_ != leaves_ and (not has_joined or weights_[next_leaf_] <= weights_[next_joined()]))
            return next_leaf_++;
        ENSURE(has_joined, "two nodes without a parent are left to join");
        return leaves_ + joined_taken_++;
    }
    [[nodiscard]] std::size_t next_joined() const noexcept { return leaves_ + joined_taken_; }

    std::size_t leaves_;
    std::size_t end_ = 0;
    std::size_t next_leaf_ = 0;
    std::size_t joined_taken_ = 0;
    std::array<std::uint32_t, nodes_max> weights_;
    std::array<std::uint16_t, nodes_max> parents_;
};

// Returns how many sequences of 15 bits begin with one of the codes.
[[nodiscard]] std::uint32_t sequences_of(const length_counts& lengths) noexcept {
    std::uint32_t sum = 0;
    for (unsigned bits = 1; bits <= huffman_bits_max; ++bits)
        sum += lengths[bits] << (huffman_bits_max - bits);
    return sum;
}

// Codes that were too long were shortened, which takes more sequences than there are. Lengthens
// others, the longest first, and then shortens some again that are left over.
void make_complete(length_counts& lengths) noexcept {
    std::uint32_t taken = sequences_of(lengths);
    while (taken > whole) {
        unsigned bits = huffman_bits_max - 1;
        while (bits != 0 and lengths[bits] == 0)
            --bits;
        ENSURE(bits != 0, "a code that is not the longest can be lengthened");
        --lengths[bits];
        ++lengths[bits + 1];
        taken -= 1U << (huffman_bits_max - bits - 1);
    }
    while (taken < whole) {
        ENSURE(lengths[huffman_bits_max] != 0, "a code of the greatest length can be shortened");
        --lengths[huffman_bits_max];
        ++lengths[huffman_bits_max - 1];
        ++taken;
    }
}

}  // namespace

void huffman_encoder::assign(const symbol_counts& counts) noexcept {
    std::array<std::uint16_t, huffman_symbols> symbols;
    const std::size_t used = order_symbols(counts, symbols);
    ENSURE(used >= 2, "a code has two symbols at least");
    length_counts lengths = code_tree(counts, std::span(symbols).first(used)).depths();
    make_complete(lengths);

    bits_.fill(0);
    std::size_t rarest = 0;
    for (unsigned bits = huffman_bits_max; bits != 0; --bits)
        for (std::uint32_t i = 0; i != lengths[bits]; ++i)
            bits_[symbols[rarest++]] = static_cast<std::uint8_t>(bits);
    ENSURE(rarest == used, "each symbol that occurs has a code");

    std::array<std::uint32_t, huffman_bits_max + 1> next{};
    for (unsigned bits = 1; bits <= huffman_bits_max; ++bits)
        next[bits] = (next[bits - 1] + (bits == 1 ? 0 : lengths[bits - 1])) << 1;
    for (std::size_t symbol = 0; symbol != huffman_symbols; ++symbol)
        if (bits_[symbol] != 0) codes_[symbol] = static_cast<std::uint16_t>(next[bits_[symbol]]++);
}

void huffman_encoder::write_table(std::span<std::byte, huffman_table_bytes> to) const noexcept {
    for (std::size_t i = 0; i != huffman_table_bytes; ++i)
        to[i] = std::byte(bits_[2 * i] | bits_[2 * i + 1] << 4);
}

bool huffman_decoder::read_table(std::span<const std::byte, huffman_table_bytes> from) noexcept {
    const auto bits_of = [&](std::size_t symbol) {
        return std::to_integer<unsigned>(from[symbol / 2]) >> (symbol % 2 * 4) & 0xfU;
    };
    length_counts lengths{};
    for (std::size_t symbol = 0; symbol != huffman_symbols; ++symbol)
        ++lengths[bits_of(symbol)];
    lengths[0] = 0;
    if (sequences_of(lengths) != whole) return false;

    std::array<std::uint16_t, huffman_bits_max + 1> next{};   // where the next symbol is stored
    std::array<std::uint32_t, huffman_bits_max + 1> codes{};  // and its code
    code_ends_[0] = symbol_ends_[0] = 0;
    for (unsigned bits = 1; bits <= huffman_bits_max; ++bits) {
        next[bits] = symbol_ends_[bits - 1];
        codes[bits] = code_ends_[bits - 1];
        symbol_ends_[bits] = static_cast<std::uint16_t>(next[bits] + lengths[bits]);
        code_ends_[bits] = codes[bits] + (lengths[bits] << (huffman_bits_max - bits));
    }
    // The remaining sequences have longer codes.
    std::fill(quick_.begin() + (code_ends_[quick_bits] >> (huffman_bits_max - quick_bits)), quick_.end(),
              found{});
    for (std::size_t symbol = 0; symbol != huffman_symbols; ++symbol) {
        const unsigned bits = bits_of(symbol);
        if (bits == 0) continue;
        symbols_[next[bits]++] = static_cast<std::uint16_t>(symbol);
        if (bits > quick_bits) continue;
        const std::uint32_t first = codes[bits] >> (huffman_bits_max - quick_bits);
        codes[bits] += 1U << (huffman_bits_max - bits);
        std::fill_n(
            quick_.begin() + first, 1U << (quick_bits - bits),
            found{.symbol = static_cast<std::uint16_t>(symbol), .bits = static_cast<std::uint8_t>(bits)});
    }
    return true;
}

huffman_decoder::found huffman_decoder::decode_long(std::uint32_t next_15_bits) const noexcept {
    unsigned bits = quick_bits + 1;
    while (next_15_bits >= code_ends_[bits])
        ++bits;  // ends: the last of the ends is beyond all sequences
    ENSURE(bits <= huffman_bits_max and next_15_bits >= code_ends_[bits - 1],
           "a sequence of bits begins with a code");
    const std::uint32_t index = (next_15_bits - code_ends_[bits - 1]) >> (huffman_bits_max - bits);
    return {.symbol = symbols_[symbol_ends_[bits - 1] + index], .bits = static_cast<std::uint8_t>(bits)};
}

}  // namespace sluice::smb::wire

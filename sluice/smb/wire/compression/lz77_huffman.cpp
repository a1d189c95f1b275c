#include "sluice/smb/wire/compression/lz77_huffman.hpp"

#include <bit>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/compression/byte_matches.hpp"

namespace sluice::smb::wire::lz77_huffman {
namespace {

constexpr std::size_t in_bytes_max = 1U << 30;
constexpr std::size_t distance_max = 65535;
constexpr std::size_t searched_bytes = 4;  // shorter matches save little

constexpr std::size_t literals = 256;
constexpr std::size_t end_symbol = 256;  // also a match of the nearest three bytes

// The ranges of the fields of a length, after `match_bytes_min` was subtracted.
constexpr std::size_t in_symbol = 15;  // and more: continues in a byte
constexpr std::size_t in_byte = 255;   // in two bytes, which have the sum, or in four

constexpr unsigned bits_per_word = 16;

// The stored form of a match: its symbol, and the bits of the distance after it.
struct match_code {
    std::size_t symbol;
    unsigned distance_bits;
};
[[nodiscard]] match_code code_of(std::size_t distance, std::size_t stored_length) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(distance)) - 1;
    return {.symbol = literals + bits * 16U + std::min(stored_length, in_symbol), .distance_bits = bits};
}

// Words of bits, most significant first, with bytes in between. A word has its place when the
// decompressor reads it, two words ahead: that is before the bytes that follow its first bits.
class bit_writer {
public:
    explicit bit_writer(mutable_bytes out) noexcept
        : begin_(out.data()), at_(out.data()), end_(out.data() + out.size()) {}

    // Begins a block. Returns the place of its table, or null if there is no room.
    [[nodiscard]] std::byte* begin_block() noexcept {
        std::byte* const table = at_;
        if (not claim(huffman_table_bytes)) return nullptr;
        word_at_ = at_;
        if (not claim(sizeof(le16))) return nullptr;
        next_word_at_ = at_;
        if (not claim(sizeof(le16))) return nullptr;
        word_ = 0;
        free_ = bits_per_word;
        return table;
    }
    [[nodiscard]] bool put_bits(std::uint32_t bits, unsigned count) noexcept {
        if (count <= free_) {
            word_ = word_ << count | bits;
            free_ -= count;
            return true;
        }
        const unsigned rest = count - free_;
        store(word_at_, word_ << free_ | bits >> rest);
        word_at_ = next_word_at_;
        next_word_at_ = at_;
        word_ = bits & ((1U << rest) - 1);
        free_ = bits_per_word - rest;
        return claim(sizeof(le16));
    }
    template <wire_type T>
    [[nodiscard]] bool put_field(const T& field) noexcept {
        std::byte* const to = at_;
        if (not claim(sizeof field)) return false;
        std::memcpy(to, &field, sizeof field);
        return true;
    }
    void end_block() noexcept {
        store(word_at_, word_ << free_);
        store(next_word_at_, 0);
    }
    [[nodiscard]] std::size_t written() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

private:
    [[nodiscard]] bool claim(std::size_t bytes) noexcept {
        if (static_cast<std::size_t>(end_ - at_) < bytes) return false;
        at_ += bytes;
        return true;
    }
    static void store(std::byte* to, std::uint32_t word) noexcept {
        const le16 stored(static_cast<std::uint16_t>(word));
        std::memcpy(to, &stored, sizeof stored);
    }

    std::byte* const begin_;
    std::byte* at_;
    std::byte* const end_;
    std::byte* word_at_ = nullptr;
    std::byte* next_word_at_ = nullptr;
    std::uint32_t word_ = 0;
    unsigned free_ = 0;
};

// Finds the elements of the bytes from `start` to `end`. Returns how many they are.
[[nodiscard]] std::size_t find_elements(bytes_view in, std::size_t start, std::size_t end,
                                        work_area& work) noexcept {
    const std::byte* const bytes = in.data();
    const std::size_t searched = end - start < searched_bytes ? start : end - searched_bytes + 1;
    std::size_t count = 0;
    std::size_t misses = 0;
    std::size_t at = start;
    const auto add_literals = [&](std::size_t up_to) {
        for (; at != up_to; ++at) {
            const auto literal = std::to_integer<std::uint32_t>(bytes[at]);
            work.elements[count++] = literal;
            ++work.counts[literal];
        }
    };
    while (at < searched) {
        const std::uint32_t four = four_bytes(bytes + at);
        std::uint32_t& last = work.last[hash_of(four, work_area::hash_bits)];
        const std::size_t candidate = last;
        last = static_cast<std::uint32_t>(at + 1);
        const std::size_t distance = at + 1 - candidate;
        if (candidate == 0 or distance > distance_max or four_bytes(bytes + candidate - 1) != four) {
            // The longer nothing repeats, the fewer positions are searched.
            add_literals(at + std::min(1 + misses++ / 64, searched - at));
            continue;
        }
        const std::size_t length = equal_bytes(bytes + candidate - 1, bytes + at, end - at);
        const std::size_t stored_length = length - match_bytes_min;
        work.elements[count++] = static_cast<std::uint32_t>(distance << 16 | stored_length);
        ++work.counts[code_of(distance, stored_length).symbol];
        const std::size_t match_end = std::min(at + length, searched);
        for (std::size_t inner = match_end - std::min(match_end - at - 1, std::size_t{8}); inner < match_end;
             ++inner)
            work.last[hash_of(four_bytes(bytes + inner), work_area::hash_bits)] =
                static_cast<std::uint32_t>(inner + 1);
        at += length;
        misses = 0;
    }
    add_literals(end);
    return count;
}

[[nodiscard]] bool put_match(bit_writer& writer, const huffman_encoder& codes, std::size_t distance,
                             std::size_t stored_length) noexcept {
    const match_code code = code_of(distance, stored_length);
    if (not writer.put_bits(codes.code_of(code.symbol), codes.bits_of(code.symbol))) return false;
    if (stored_length >= in_symbol) {
        const std::size_t rest = std::min(stored_length - in_symbol, in_byte);
        if (not writer.put_field(le8(static_cast<std::uint8_t>(rest)))) return false;
        if (rest == in_byte and not writer.put_field(le16(static_cast<std::uint16_t>(stored_length))))
            return false;
    }
    const auto below = static_cast<std::uint32_t>(distance) - (1U << code.distance_bits);
    return writer.put_bits(below, code.distance_bits);
}

// The reader of a block. Invariant: at_ <= end_.
class block_reader {
public:
    explicit block_reader(bytes_view in) noexcept : at_(in.data()), end_(in.data() + in.size()) {}

    [[nodiscard]] bool is_at_end() const noexcept { return at_ == end_; }

    [[nodiscard]] decoded<void> begin_block() noexcept {
        const auto remaining = static_cast<std::size_t>(end_ - at_);
        if (remaining < huffman_table_bytes + 2 * sizeof(le16))
            return std::unexpected(decode_error::truncated);
        const std::span<const std::byte, huffman_table_bytes> table(at_, huffman_table_bytes);
        if (not codes_.read_table(table)) return std::unexpected(decode_error::bad_value);
        at_ += huffman_table_bytes;
        le16 first;
        le16 second;
        if (not take(first) or not take(second)) return std::unexpected(decode_error::truncated);
        bits_ = std::uint32_t{first.value()} << bits_per_word | second.value();
        beyond_word_ = bits_per_word;
        return {};
    }
    // Takes a symbol; false: there are too few bytes.
    [[nodiscard]] bool take_symbol(std::size_t& symbol) noexcept {
        const huffman_decoder::found next = codes_.decode(bits_ >> (32 - huffman_bits_max));
        symbol = next.symbol;
        return consume(next.bits);
    }
    // Takes the fields after the symbol of a match.
    [[nodiscard]] decoded<byte_match> take_match(std::size_t symbol) noexcept {
        std::size_t length = symbol % 16;
        if (length == in_symbol) {
            const auto all = take_length();
            if (not all) return std::unexpected(all.error());
            length = *all;
        }
        const auto distance_bits = static_cast<unsigned>(symbol - literals) / 16;
        std::size_t distance = std::size_t{1} << distance_bits;
        if (distance_bits != 0) distance += bits_ >> (32 - distance_bits);
        if (not consume(distance_bits)) return std::unexpected(decode_error::truncated);
        return byte_match{.distance = distance, .length = length + match_bytes_min};
    }

private:
    template <wire_type T>
    [[nodiscard]] bool take(T& field) noexcept {
        if (static_cast<std::size_t>(end_ - at_) < sizeof field) return false;
        std::memcpy(&field, at_, sizeof field);
        at_ += sizeof field;
        return true;
    }
    [[nodiscard]] decoded<std::size_t> take_length() noexcept {
        le8 byte;
        if (not take(byte)) return std::unexpected(decode_error::truncated);
        if (byte.value() != in_byte) return in_symbol + byte.value();
        le16 two;
        if (not take(two)) return std::unexpected(decode_error::truncated);
        std::size_t length = two.value();
        if (length == 0) {
            le32 four;
            if (not take(four)) return std::unexpected(decode_error::truncated);
            length = four.value();
        }
        if (length < in_symbol) return std::unexpected(decode_error::bad_value);
        return length;
    }
    [[nodiscard]] bool consume(unsigned count) noexcept {
        bits_ <<= count;
        if (count <= beyond_word_) {
            beyond_word_ -= count;
            return true;
        }
        le16 word;
        if (not take(word)) return false;
        const unsigned missing = count - beyond_word_;
        bits_ |= std::uint32_t{word.value()} << missing;
        beyond_word_ = bits_per_word - missing;
        return true;
    }

    const std::byte* at_;
    const std::byte* const end_;
    std::uint32_t bits_ = 0;    // the next 16 bits at least, at the top
    unsigned beyond_word_ = 0;  // how many more
    huffman_decoder codes_;
};

}  // namespace

std::optional<std::size_t> compress(bytes_view in, mutable_bytes out, work_area& work) noexcept {
    if (in.empty() or in.size() > in_bytes_max) return std::nullopt;
    bit_writer writer(out);
    work.last.fill(0);
    for (std::size_t start = 0; start != in.size();) {
        const std::size_t end = std::min(start + block_bytes, in.size());
        work.counts.fill(0);
        // In each block, because a code of one symbol would not be complete.
        work.counts[end_symbol] = 1;
        const std::size_t elements = find_elements(in, start, end, work);
        work.codes.assign(work.counts);
        std::byte* const table = writer.begin_block();
        if (table == nullptr) return std::nullopt;
        work.codes.write_table(std::span<std::byte, huffman_table_bytes>(table, huffman_table_bytes));
        for (const std::uint32_t element : std::span(work.elements).first(elements)) {
            const bool has_room =
                element < literals ? writer.put_bits(work.codes.code_of(element), work.codes.bits_of(element))
                                   : put_match(writer, work.codes, element >> 16, element & 0xffffU);
            if (not has_room) return std::nullopt;
        }
        const bool is_last = end == in.size();
        if (is_last and not writer.put_bits(work.codes.code_of(end_symbol), work.codes.bits_of(end_symbol)))
            return std::nullopt;
        writer.end_block();
        start = end;
    }
    return writer.written();
}

decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept {
    if (in.empty() and out.empty()) return {};
    block_reader reader(in);
    std::size_t written = 0;
    std::size_t block_end = 0;
    std::size_t symbol = 0;
    while (written != out.size()) {
        // A match may exceed its block; the next block begins after it.
        if (written >= block_end) {
            if (const auto begun = reader.begin_block(); not begun) return begun;
            block_end = written + block_bytes;
        }
        if (not reader.take_symbol(symbol)) return std::unexpected(decode_error::truncated);
        if (symbol < literals) {
            out.data()[written++] = std::byte(symbol);
            continue;
        }
        const auto match = reader.take_match(symbol);
        if (not match) return std::unexpected(match.error());
        if (match->distance > written) return std::unexpected(decode_error::bad_value);
        const std::size_t room = out.size() - written;
        if (match->length > room) return std::unexpected(decode_error::too_long);
        copy_match(out.data() + written, room, *match);
        written += match->length;
    }
    if (written == 0) return std::unexpected(decode_error::too_long);
    // Some compressors omit the mark of the end after a whole block.
    if (written == block_end and reader.is_at_end()) return {};
    const bool has_mark = reader.take_symbol(symbol) and symbol == end_symbol;
    if (not has_mark or not reader.is_at_end()) return std::unexpected(decode_error::too_long);
    return {};
}

}  // namespace sluice::smb::wire::lz77_huffman

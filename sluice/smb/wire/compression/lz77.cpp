#include "sluice/smb/wire/compression/lz77.hpp"

#include <bit>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/compression/byte_matches.hpp"

namespace sluice::smb::wire::lz77 {
namespace {

constexpr std::size_t distance_max = 8192;
// Longer ones need a field of 32 bits, which early decompressors do not know.
constexpr std::size_t length_max = 0xffff + match_bytes_min;
constexpr std::size_t in_bytes_max = 1U << 30;

// The ranges of the fields that a length continues in, after `match_bytes_min` was subtracted.
constexpr std::size_t in_match = 7;   // and more: continues in half a byte
constexpr std::size_t in_half = 15;   // in a byte
constexpr std::size_t in_byte = 255;  // in two bytes, which have the sum, or in four

constexpr unsigned flags_per_word = 32;

// Elements of the format, appended while they fit.
class element_writer {
public:
    explicit element_writer(mutable_bytes out) noexcept
        : begin_(out.data()), at_(out.data()), end_(out.data() + out.size()) {}

    [[nodiscard]] bool begin_flags() noexcept {
        flags_at_ = at_;
        flag_count_ = 0;
        return put(le32(0));
    }
    [[nodiscard]] bool put_literal(std::byte value) noexcept {
        if (at_ == end_) return false;
        *at_++ = value;
        return put_flag(0);
    }
    [[nodiscard]] bool put_match(byte_match what) noexcept {
        const std::size_t length = what.length - match_bytes_min;
        const auto distance = static_cast<std::uint16_t>((what.distance - 1) << 3);
        const auto first = static_cast<std::uint16_t>(distance | std::min(length, in_match));
        if (not put(le16(first))) return false;
        if (length >= in_match and not put_rest(length - in_match)) return false;
        return put_flag(1);
    }
    [[nodiscard]] std::size_t finish() noexcept {
        const unsigned unused = flags_per_word - flag_count_;
        const std::uint64_t ones = (std::uint64_t{1} << unused) - 1;
        store_flags(static_cast<std::uint32_t>(std::uint64_t{flags_} << unused | ones));
        return static_cast<std::size_t>(at_ - begin_);
    }

private:
    template <wire_type T>
    [[nodiscard]] bool put(const T& field) noexcept {
        if (static_cast<std::size_t>(end_ - at_) < sizeof field) return false;
        std::memcpy(at_, &field, sizeof field);
        at_ += sizeof field;
        return true;
    }
    void store_flags(std::uint32_t flags) noexcept {
        const le32 stored(flags);
        std::memcpy(flags_at_, &stored, sizeof stored);
        flags_ = 0;
    }
    [[nodiscard]] bool put_flag(std::uint32_t flag) noexcept {
        flags_ = flags_ << 1 | flag;
        if (++flag_count_ != flags_per_word) return true;
        store_flags(flags_);
        return begin_flags();
    }
    // Writes the part of a length beyond the range of its match.
    [[nodiscard]] bool put_rest(std::size_t length) noexcept {
        const auto half = static_cast<std::uint8_t>(std::min(length, in_half));
        if (half_at_ != nullptr) {
            *half_at_ |= std::byte(half << 4);
            half_at_ = nullptr;
        } else {
            half_at_ = at_;
            if (not put(le8(half))) return false;
        }
        if (length < in_half) return true;
        const std::size_t after_half = length - in_half;
        if (not put(le8(static_cast<std::uint8_t>(std::min(after_half, in_byte))))) return false;
        return after_half < in_byte or put(le16(static_cast<std::uint16_t>(length + in_match)));
    }

    std::byte* const begin_;
    std::byte* at_;
    std::byte* const end_;
    std::byte* flags_at_ = nullptr;
    std::byte* half_at_ = nullptr;  // whose upper half is free
    std::uint32_t flags_ = 0;
    unsigned flag_count_ = 0;
};

// Reads the elements. Invariant: at_ <= end_.
class element_reader {
public:
    explicit element_reader(bytes_view in) noexcept : at_(in.data()), end_(in.data() + in.size()) {}

    [[nodiscard]] std::size_t remaining() const noexcept { return static_cast<std::size_t>(end_ - at_); }
    [[nodiscard]] const std::byte* at() const noexcept { return at_; }
    void skip(std::size_t bytes) noexcept { at_ += bytes; }

    template <wire_type T>
    [[nodiscard]] bool take(T& field) noexcept {
        if (remaining() < sizeof field) return false;
        std::memcpy(&field, at_, sizeof field);
        at_ += sizeof field;
        return true;
    }

    [[nodiscard]] decoded<byte_match> take_match() noexcept {
        le16 first;
        if (not take(first)) return std::unexpected(decode_error::truncated);
        byte_match what{.distance = (first.value() >> 3U) + std::size_t{1},
                        .length = first.value() & in_match};
        if (what.length == in_match) {
            const auto rest = take_rest();
            if (not rest) return std::unexpected(rest.error());
            what.length += *rest;
        }
        what.length += match_bytes_min;
        return what;
    }

private:
    [[nodiscard]] decoded<std::size_t> take_rest() noexcept {
        std::size_t length = 0;
        if (half_ != nullptr) {
            length = std::to_integer<std::size_t>(*half_) >> 4;
            half_ = nullptr;
        } else {
            half_ = at_;
            le8 both;
            if (not take(both)) return std::unexpected(decode_error::truncated);
            length = both.value() & in_half;
        }
        if (length != in_half) return length;
        le8 byte;
        if (not take(byte)) return std::unexpected(decode_error::truncated);
        if (byte.value() != in_byte) return length + byte.value();
        le16 two;
        if (not take(two)) return std::unexpected(decode_error::truncated);
        length = two.value();
        if (length == 0) {
            le32 four;
            if (not take(four)) return std::unexpected(decode_error::truncated);
            length = four.value();
        }
        if (length < in_half + in_match) return std::unexpected(decode_error::bad_value);
        return length - in_match;
    }

    const std::byte* at_;
    const std::byte* const end_;
    const std::byte* half_ = nullptr;  // whose upper half is not used yet
};

// Copies 1 to 32 literals, of which both sides have as many.
void copy_literals(std::byte* to, const std::byte* from, std::size_t count, bool has_room_for_all) noexcept {
    if (has_room_for_all)
        std::memcpy(to, from, flags_per_word);  // a constant length needs no call
    else
        std::memcpy(to, from, count);
}

}  // namespace

std::optional<std::size_t> compress(bytes_view in, mutable_bytes out, work_area& work) noexcept {
    if (in.size() > in_bytes_max) return std::nullopt;
    element_writer writer(out);
    if (not writer.begin_flags()) return std::nullopt;
    work.last.fill(0);
    const std::byte* const bytes = in.data();
    const std::size_t searched = in.size() < match_bytes_min ? 0 : in.size() - match_bytes_min + 1;
    std::size_t at = 0;
    std::size_t misses = 0;
    while (at < searched) {
        const std::uint32_t three = three_bytes(bytes + at);
        std::uint32_t& last = work.last[hash_of(three, work_area::hash_bits)];
        const std::size_t candidate = last;
        last = static_cast<std::uint32_t>(at + 1);
        if (candidate != 0 and at - candidate < distance_max and
            three_bytes(bytes + candidate - 1) == three) {
            const std::byte* const from = bytes + candidate - 1;
            const std::size_t length = equal_bytes(from, bytes + at, std::min(in.size() - at, length_max));
            if (not writer.put_match({.distance = at + 1 - candidate, .length = length})) return std::nullopt;
            // The bytes of short matches are found again, those of long ones from their end on.
            const std::size_t end = std::min(at + length, searched);
            for (std::size_t inner = end - std::min(end - at - 1, std::size_t{8}); inner < end; ++inner)
                work.last[hash_of(three_bytes(bytes + inner), work_area::hash_bits)] =
                    static_cast<std::uint32_t>(inner + 1);
            at += length;
            misses = 0;
            continue;
        }
        // The longer nothing repeats, the fewer positions are searched.
        const std::size_t step = std::min(1 + misses++ / 64, searched - at);
        for (std::size_t i = 0; i != step; ++i)
            if (not writer.put_literal(bytes[at + i])) return std::nullopt;
        at += step;
    }
    for (; at != in.size(); ++at)
        if (not writer.put_literal(bytes[at])) return std::nullopt;
    return writer.finish();
}

decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept {
    element_reader reader(in);
    std::size_t written = 0;
    std::uint32_t flags = 0;
    unsigned flag_count = 0;
    while (written != out.size()) {
        if (flag_count == 0) {
            le32 word;
            if (not reader.take(word)) return std::unexpected(decode_error::truncated);
            flags = word.value();
            flag_count = flags_per_word;
        }
        const std::size_t room = out.size() - written;
        std::byte* const to = out.data() + written;
        const auto zeros = static_cast<unsigned>(std::countl_zero(flags));
        if (zeros != 0) {
            const std::size_t count = std::min<std::size_t>({zeros, flag_count, room});
            if (reader.remaining() < count) return std::unexpected(decode_error::truncated);
            copy_literals(to, reader.at(), count, std::min(room, reader.remaining()) >= flags_per_word);
            reader.skip(count);
            written += count;
            flags = static_cast<std::uint32_t>(std::uint64_t{flags} << count);
            flag_count -= static_cast<unsigned>(count);
            continue;
        }
        flags <<= 1;
        --flag_count;
        const auto match = reader.take_match();
        if (not match) return std::unexpected(match.error());
        if (match->distance > written) return std::unexpected(decode_error::bad_value);
        if (match->length > room) return std::unexpected(decode_error::too_long);
        copy_match(to, room, *match);
        written += match->length;
    }
    const bool has_empty_word = flag_count == 0 and reader.remaining() == sizeof(le32);
    if (reader.remaining() != 0 and not has_empty_word) return std::unexpected(decode_error::too_long);
    return {};
}

}  // namespace sluice::smb::wire::lz77

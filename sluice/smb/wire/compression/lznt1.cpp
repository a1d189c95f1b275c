#include "sluice/smb/wire/compression/lznt1.hpp"

#include <bit>
#include <utility>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/compression/byte_matches.hpp"

namespace sluice::smb::wire::lznt1 {
namespace {

constexpr std::size_t chunk_bytes = 4096;
constexpr std::size_t in_bytes_max = 1U << 30;

// The header of a chunk: the size of its data less one, a fixed signature, and the kind.
constexpr unsigned size_mask = 0x0fff;
constexpr unsigned signature_mask = 0x7000;
constexpr unsigned signature = 0x3000;
constexpr unsigned compressed_flag = 0x8000;

constexpr unsigned elements_per_flags = 8;

// Returns how many of the 16 bits of a match have its length, after `preceding` bytes of the chunk,
// at least one.
[[nodiscard]] unsigned length_bits_after(std::size_t preceding) noexcept {
    return 16U - std::max(4U, static_cast<unsigned>(std::bit_width(preceding - 1)));
}

// Decompresses the data of a chunk. Returns how many bytes they give, at most out.size().
[[nodiscard]] decoded<std::size_t> expand(bytes_view chunk, mutable_bytes out) noexcept {
    const std::byte* from = chunk.data();
    const std::byte* const end = from + chunk.size();
    std::size_t written = 0;
    while (from != end) {
        const auto flags = std::to_integer<unsigned>(*from++);
        for (unsigned i = 0; i != elements_per_flags and from != end; ++i) {
            if (written == out.size()) return std::unexpected(decode_error::too_long);
            if ((flags >> i & 1U) == 0) {
                out.data()[written++] = *from++;
                continue;
            }
            if (end - from < 2) return std::unexpected(decode_error::truncated);
            const unsigned field = std::to_integer<unsigned>(from[0]) | std::to_integer<unsigned>(from[1])
                                                                            << 8;
            from += 2;
            if (written == 0) return std::unexpected(decode_error::bad_value);
            const unsigned length_bits = length_bits_after(written);
            const byte_match what{.distance = (field >> length_bits) + std::size_t{1},
                                  .length = (field & ((1U << length_bits) - 1)) + match_bytes_min};
            if (what.distance > written) return std::unexpected(decode_error::bad_value);
            const std::size_t room = out.size() - written;
            if (what.length > room) return std::unexpected(decode_error::too_long);
            copy_match(out.data() + written, room, what);
            written += what.length;
        }
    }
    return written;
}

// The chunk of `in` from `start` on, as far as it is searched for matches.
class chunk_search {
public:
    chunk_search(bytes_view in, std::size_t start, std::size_t end, work_area& work) noexcept
        : bytes_(in.data()), start_(start), end_(end), work_(work) {}

    // Returns the match at `at`; a length of 0: there is none.
    [[nodiscard]] byte_match match_at(std::size_t at) noexcept {
        if (end_ - at < match_bytes_min) return {};
        const std::size_t candidate = replace_last(at);
        if (at == start_ or candidate <= start_ or
            three_bytes(bytes_ + candidate - 1) != three_bytes(bytes_ + at))
            return {};
        const unsigned length_bits = length_bits_after(at - start_);
        const std::size_t length_max = (1U << length_bits) - 1 + match_bytes_min;
        return {.distance = at + 1 - candidate,
                .length = equal_bytes(bytes_ + candidate - 1, bytes_ + at, std::min(length_max, end_ - at))};
    }
    void record(std::size_t from, std::size_t to) noexcept {
        for (std::size_t at = from; at < to and end_ - at >= match_bytes_min; ++at)
            (void)replace_last(at);
    }

private:
    std::size_t replace_last(std::size_t at) noexcept {
        std::uint32_t& last = work_.last[hash_of(three_bytes(bytes_ + at), work_area::hash_bits)];
        return std::exchange(last, static_cast<std::uint32_t>(at + 1));
    }

    const std::byte* bytes_;
    std::size_t start_;
    std::size_t end_;
    work_area& work_;
};

// Compresses the bytes from `start` to `end` of `in` into `out`. Returns the size, or std::nullopt
// if there is no room.
[[nodiscard]] std::optional<std::size_t> shrink(bytes_view in, std::size_t start, std::size_t end,
                                                mutable_bytes out, work_area& work) noexcept {
    chunk_search search(in, start, end, work);
    std::size_t written = 0;
    for (std::size_t at = start; at != end;) {
        if (written == out.size()) return std::nullopt;
        std::byte& flags = out.data()[written++];
        flags = std::byte{0};
        for (unsigned i = 0; i != elements_per_flags and at != end; ++i) {
            const byte_match found = search.match_at(at);
            if (found.length < match_bytes_min) {
                if (written == out.size()) return std::nullopt;
                out.data()[written++] = in.data()[at++];
                continue;
            }
            if (out.size() - written < 2) return std::nullopt;
            const unsigned length_bits = length_bits_after(at - start);
            const auto field =
                static_cast<unsigned>((found.distance - 1) << length_bits | (found.length - match_bytes_min));
            out.data()[written++] = std::byte(field & 0xff);
            out.data()[written++] = std::byte(field >> 8);
            flags |= std::byte(1U << i);
            search.record(at + 1, at + found.length);
            at += found.length;
        }
    }
    return written;
}

}  // namespace

std::optional<std::size_t> compress(bytes_view in, mutable_bytes out, work_area& work) noexcept {
    if (in.size() > in_bytes_max) return std::nullopt;
    work.last.fill(0);
    std::size_t written = 0;
    for (std::size_t start = 0; start != in.size();) {
        const std::size_t end = std::min(start + chunk_bytes, in.size());
        if (out.size() - written < sizeof(le16)) return std::nullopt;
        std::byte* const header_at = out.data() + written;
        written += sizeof(le16);
        const mutable_bytes rest = *out.from(written);
        // At least one byte less than stored.
        const mutable_bytes room = *rest.first(std::min(rest.size(), end - start - 1));
        std::optional<std::size_t> size = shrink(in, start, end, room, work);
        unsigned header = signature | compressed_flag;
        if (not size) {
            if (rest.size() < end - start) return std::nullopt;
            std::memcpy(rest.data(), in.data() + start, end - start);
            size = end - start;
            header = signature;
        }
        const le16 stored(static_cast<std::uint16_t>(header | (*size - 1)));
        std::memcpy(header_at, &stored, sizeof stored);
        written += *size;
        start = end;
    }
    return written;
}

decoded<void> decompress(bytes_view in, mutable_bytes out) noexcept {
    byte_reader reader(in);
    std::size_t written = 0;
    while (written != out.size()) {
        const auto header = reader.take<le16>();
        if (not header) return std::unexpected(decode_error::truncated);
        if ((header->value() & signature_mask) != signature) return std::unexpected(decode_error::bad_value);
        const auto chunk = reader.take_bytes((header->value() & size_mask) + std::size_t{1});
        if (not chunk) return std::unexpected(decode_error::truncated);
        const std::size_t room_bytes = std::min(chunk_bytes, out.size() - written);
        const mutable_bytes room = *out.slice({.offset = written, .length = room_bytes});
        std::size_t given = chunk->size();
        if ((header->value() & compressed_flag) != 0) {
            const auto expanded = expand(*chunk, room);
            if (not expanded) return std::unexpected(expanded.error());
            given = *expanded;
        } else {
            if (given > room_bytes) return std::unexpected(decode_error::too_long);
            std::memcpy(room.data(), chunk->data(), given);
        }
        written += given;
        if (given != chunk_bytes and written != out.size()) return std::unexpected(decode_error::bad_value);
    }
    const auto mark = reader.take<le16>();
    const bool ends = reader.remaining() == 0 and (not mark or mark->value() == 0);
    if (not ends) return std::unexpected(decode_error::too_long);
    return {};
}

}  // namespace sluice::smb::wire::lznt1

#include "sluice/smb/wire/utf16.hpp"

#include <cstdint>
#include <optional>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

constexpr bool is_high_surrogate(std::uint32_t unit) noexcept {
    return unit >= 0xd800 and unit < 0xdc00;
}
constexpr bool is_low_surrogate(std::uint32_t unit) noexcept {
    return unit >= 0xdc00 and unit < 0xe000;
}

template <class Text>
void append_utf8(Text& text, std::uint32_t point) {
    const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3f)); };
    if (point < 0x80) {
        text += static_cast<char>(point);
    } else if (point < 0x800) {
        text += {static_cast<char>(0xc0 | (point >> 6)), tail(0)};
    } else if (point < 0x10000) {
        text += {static_cast<char>(0xe0 | (point >> 12)), tail(6), tail(0)};
    } else {
        text += {static_cast<char>(0xf0 | (point >> 18)), tail(12), tail(6), tail(0)};
    }
}

/// An iterator over the code points of UTF-8. Invariant: `rest_` begins at a code point.
class utf8_points {
public:
    explicit utf8_points(std::string_view text) noexcept : rest_(text) {}

    [[nodiscard]] bool done() const noexcept { return rest_.empty(); }

    /// Returns the next code point, surrogates included. Returns std::nullopt if the bytes are not
    /// UTF-8: truncated, overlong, or beyond U+10FFFF.
    std::optional<std::uint32_t> next() noexcept {
        const auto lead = static_cast<unsigned char>(rest_[0]);
        if (lead < 0x80) return taken(1, lead);
        const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        if (lead < 0xc2 or lead > 0xf4 or rest_.size() < length) return std::nullopt;
        std::uint32_t point = lead & (0x7fU >> length);
        for (std::size_t i = 1; i < length; ++i) {
            const auto byte = static_cast<unsigned char>(rest_[i]);
            if ((byte & 0xc0) != 0x80) return std::nullopt;
            point = point << 6 | (byte & 0x3f);
        }
        constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (point < least[length] or point > 0x10ffff) return std::nullopt;
        return taken(length, point);
    }

private:
    std::uint32_t taken(std::size_t length, std::uint32_t point) noexcept {
        rest_.remove_prefix(length);
        return point;
    }

    std::string_view rest_;
};

// Calls `sink(unit)` for every 16-bit unit of `utf8`. Returns false at the first byte that is not
// WTF-8.
template <class Sink>
bool for_each_unit(std::string_view utf8, Sink sink) noexcept {
    bool after_high = false;
    for (utf8_points points(utf8); !points.done();) {
        const auto point = points.next();
        if (!point or (after_high and is_low_surrogate(*point))) return false;
        after_high = is_high_surrogate(*point);
        if (*point < 0x10000) {
            sink(static_cast<std::uint16_t>(*point));
        } else {
            sink(static_cast<std::uint16_t>(0xd800 + ((*point - 0x10000) >> 10)));
            sink(static_cast<std::uint16_t>(0xdc00 + ((*point - 0x10000) & 0x3ff)));
        }
    }
    return true;
}

// Nearly all names are ASCII, and each byte is then a unit.
bool is_ascii(std::string_view text) noexcept {
    unsigned char bits = 0;
    for (const char each : text)
        bits |= static_cast<unsigned char>(each);
    return bits < 0x80;
}

void put_ascii(byte_writer& writer, std::string_view text) noexcept {
    const auto room = writer.claim(text.size() * sizeof(le16));
    if (!room) return;
    std::byte* at = room->data();
    for (const char each : text) {
        *at++ = static_cast<std::byte>(each);
        *at++ = std::byte{};
    }
}

}  // namespace

namespace {

template <class Text>
decoded<void> append(bytes_view utf16, Text& text) {
    if (utf16.size() % 2 != 0) return std::unexpected(decode_error::bad_text);
    text.reserve(text.size() + utf16.size() / 2);
    byte_reader units(utf16);
    while (const auto unit = units.take<le16>()) {
        std::uint32_t point = unit->value();
        if (is_high_surrogate(point)) {
            const auto partner = units.rest().take<le16>();
            if (partner and is_low_surrogate(partner->value())) {
                point = 0x10000 + ((point - 0xd800) << 10) + (partner->value() - 0xdc00U);
                ENSURE(units.skip(sizeof(le16)));
            }
        }
        append_utf8(text, point);
    }
    return {};
}

}  // namespace

decoded<std::string> utf8_of(bytes_view utf16) noexcept {
    std::string text;
    if (const auto done = append(utf16, text); !done) return std::unexpected(done.error());
    return text;
}

decoded<void> append_utf8_of(bytes_view utf16, std::pmr::string& text) noexcept {
    return append(utf16, text);
}

decoded<std::size_t> utf16_bytes_of(std::string_view utf8) noexcept {
    if (is_ascii(utf8)) return utf8.size() * sizeof(le16);
    std::size_t bytes = 0;
    if (!for_each_unit(utf8, [&](std::uint16_t) { bytes += sizeof(le16); })) {
        return std::unexpected(decode_error::bad_text);
    }
    return bytes;
}

decoded<std::size_t> put_utf16(byte_writer& writer, std::string_view utf8) noexcept {
    if (is_ascii(utf8)) {
        put_ascii(writer, utf8);
        return utf8.size() * sizeof(le16);
    }
    const auto bytes = utf16_bytes_of(utf8);
    if (bytes) for_each_unit(utf8, [&](std::uint16_t unit) { writer.put(le16(unit)); });
    return bytes;
}

decoded<std::string> utf16_of(std::string_view utf8) noexcept {
    std::string bytes;
    const bool valid = for_each_unit(utf8, [&](std::uint16_t unit) {
        bytes += static_cast<char>(unit & 0xff);
        bytes += static_cast<char>(unit >> 8);
    });
    if (!valid) return std::unexpected(decode_error::bad_text);
    return bytes;
}

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/security/sid.hpp"

#include <charconv>
#include <system_error>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct sid_wire {
    le8  revision;        // 0  always 1
    le8  count;           // 1
    be16 authority_high;  // 2  the only big-endian number of the format
    be32 authority_low;   // 4
};
static_assert(sizeof(sid_wire) == 8);
// clang-format on

// Consumes a number in `base` at the front. Returns std::nullopt if there is none or it is above
// `most`.
std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t most, int base) noexcept {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc() or number > most) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

void append_number(std::string& text, std::uint64_t number, int base) {
    std::array<char, 20> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
    text.append(digits.data(), written.ptr);
}

}  // namespace

void encode(byte_writer& writer, const sid& who) noexcept {
    writer.put(sid_wire{.revision = le8(1),
                        .count = le8(static_cast<std::uint8_t>(who.sub_authorities().size())),
                        .authority_high = be16(static_cast<std::uint16_t>(who.authority() >> 32)),
                        .authority_low = be32(static_cast<std::uint32_t>(who.authority()))});
    for (const std::uint32_t number : who.sub_authorities())
        writer.put(le32(number));
}

decoded<sid> take_sid(byte_reader& reader) noexcept {
    byte_reader ahead = reader;
    const auto head = ahead.take<sid_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->revision.value() != 1) return std::unexpected(decode_error::bad_value);
    const std::size_t count = head->count.value();
    if (count > sid::sub_authorities_max) return std::unexpected(decode_error::too_many);
    std::array<std::uint32_t, sid::sub_authorities_max> numbers{};
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = ahead.take<le32>();
        if (!number) return std::unexpected(decode_error::truncated);
        numbers[i] = number->value();
    }
    reader = ahead;
    const std::uint64_t authority =
        std::uint64_t{head->authority_high.value()} << 32 | head->authority_low.value();
    return sid(authority, std::span<const std::uint32_t>(numbers.data(), count));
}

std::string text_of(const sid& who) {
    std::string text = "S-1-";
    const bool wide = who.authority() >> 32 != 0;
    if (wide) {
        std::string digits;
        append_number(digits, who.authority(), 16);
        text += "0x" + std::string(12 - digits.size(), '0') + digits;
    } else {
        append_number(text, who.authority(), 10);
    }
    for (const std::uint32_t number : who.sub_authorities()) {
        text += '-';
        append_number(text, number, 10);
    }
    return text;
}

std::optional<sid> sid_of(std::string_view text) noexcept {
    if (!text.starts_with("S-1-") and !text.starts_with("s-1-")) return std::nullopt;
    text.remove_prefix(4);
    const bool hexadecimal = text.starts_with("0x") or text.starts_with("0X");
    if (hexadecimal) text.remove_prefix(2);
    const auto authority = take_number(text, sid::authority_max, hexadecimal ? 16 : 10);
    if (!authority) return std::nullopt;
    std::array<std::uint32_t, sid::sub_authorities_max> numbers{};
    std::size_t count = 0;
    while (!text.empty()) {
        if (text.front() != '-' or count == numbers.size()) return std::nullopt;
        text.remove_prefix(1);
        const auto number = take_number(text, 0xFFFFFFFF, 10);
        if (!number) return std::nullopt;
        numbers[count++] = static_cast<std::uint32_t>(*number);
    }
    return sid(*authority, std::span<const std::uint32_t>(numbers.data(), count));
}

}  // namespace sluice::smb::wire

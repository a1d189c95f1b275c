#include "sluice/fat/codec/long_name.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint8_t last_piece = 0x40;
constexpr std::uint8_t number_bits = 0x3f;

// clang-format off
struct piece_layout {
    le8                 order;       //  0  number, and 0x40 for the last
    std::array<le16, 5> first;       //  1
    le8                 attributes;  // 11  long_name
    le8                 type;        // 12  0
    le8                 checksum;    // 13
    std::array<le16, 6> second;      // 14
    le16                cluster;     // 26  0
    std::array<le16, 2> third;       // 28
};
// clang-format on
static_assert(sizeof(piece_layout) == slot_bytes and alignof(piece_layout) == 1);
static_assert(offsetof(piece_layout, second) == 14 and offsetof(piece_layout, third) == 28);

template <class Piece>
auto& unit_of(Piece& piece, std::size_t index) noexcept {
    if (index < 5) return piece.first[index];
    if (index < 11) return piece.second[index - 5];
    return piece.third[index - 11];
}

void append_utf8(std::string& text, char32_t point) {
    const auto byte = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
    if (point < 0x80) return byte(point);
    if (point < 0x800) {
        byte(0xc0 | point >> 6);
    } else {
        if (point < 0x10000) {
            byte(0xe0 | point >> 12);
        } else {
            byte(0xf0 | point >> 18);
            byte(0x80 | (point >> 12 & 0x3f));
        }
        byte(0x80 | (point >> 6 & 0x3f));
    }
    byte(0x80 | (point & 0x3f));
}

}  // namespace

std::u16string to_utf16(std::string_view name) {
    std::u16string units;
    for (std::size_t at = 0; at < name.size();) {
        const name_character next = character_at(name, at);
        at += next.length;
        if (next.point > 0x10ffff) {
            units.push_back(u'\ufffd');
        } else if (next.point > 0xffff) {
            units.push_back(static_cast<char16_t>(0xd7c0 + (next.point >> 10)));
            units.push_back(static_cast<char16_t>(0xdc00 | (next.point & 0x3ff)));
        } else {
            units.push_back(static_cast<char16_t>(next.point));
        }
    }
    return units;
}

std::string to_utf8(std::u16string_view name) {
    std::string text;
    for (std::size_t at = 0; at < name.size();) {
        const name_character next = character_at(name, at);
        at += next.length;
        append_utf8(text, next.point);
    }
    return text;
}

std::uint8_t checksum_of(const short_name_bytes& name) noexcept {
    std::uint8_t sum = 0;
    for (const unsigned char each : name)
        sum = static_cast<std::uint8_t>((sum >> 1 | sum << 7) + each);
    return sum;
}

directory_entry long_name_slot(std::u16string_view name, std::size_t number, std::uint8_t checksum) noexcept {
    const std::size_t pieces = long_name_slots(name.size());
    ENSURE(not name.empty() and name.size() <= long_name_units_max and number >= 1 and number <= pieces);
    piece_layout piece{};
    piece.order = le8(static_cast<std::uint8_t>(number | (number == pieces ? last_piece : 0U)));
    piece.attributes = le8(static_cast<std::uint8_t>(attributes::long_name));
    piece.checksum = le8(checksum);
    for (std::size_t i = 0; i < units_per_slot; ++i) {
        const std::size_t at = (number - 1) * units_per_slot + i;
        // One zero ends a name that does not fill its last piece; the rest is padded with ones.
        const char16_t unit = at < name.size() ? name[at] : at == name.size() ? u'\0' : u'\xffff';
        unit_of(piece, i) = le16(unit);
    }
    directory_entry slot;
    std::memcpy(&slot, &piece, sizeof slot);
    return slot;
}

void long_name_collector::add(const directory_entry& slot) noexcept {
    piece_layout piece;
    std::memcpy(&piece, &slot, sizeof piece);
    const std::uint8_t order = piece.order.value();
    const std::size_t number = order & number_bits;
    if (number == 0 or number > long_name_slots_max) return drop();
    if ((order & last_piece) != 0) {
        slots_ = next_ = number;
        checksum_ = piece.checksum.value();
    }
    if (slots_ == 0 or number != next_ or piece.checksum.value() != checksum_) return drop();
    for (std::size_t i = 0; i < units_per_slot; ++i)
        units_[(number - 1) * units_per_slot + i] = static_cast<char16_t>(unit_of(piece, i).value());
    --next_;
}

std::optional<std::u16string_view> long_name_collector::name_of(const short_name_bytes& name) const noexcept {
    if (slots_ == 0 or next_ != 0 or checksum_of(name) != checksum_) return std::nullopt;
    ENSURE(slots_ <= long_name_slots_max, "the buffer holds all pieces");
    const auto all = std::u16string_view(units_.data(), slots_ * units_per_slot);
    const std::u16string_view text = all.substr(0, all.find(u'\0'));
    if (text.empty() or text.size() > long_name_units_max) return std::nullopt;
    return text;
}

}  // namespace sluice::fat

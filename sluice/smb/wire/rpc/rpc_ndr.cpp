#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

#include <algorithm>
#include <array>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::size_t counted_text_bytes_max = 0xFFFE;

// Returns the text as UTF-16; empty if it cannot be a counted text.
std::string counted_units(std::string_view utf8) {
    std::string units = utf16_of(utf8).value_or(std::string());
    if (units.size() > counted_text_bytes_max) units.clear();
    return units;
}

}  // namespace

void ndr_writer::u32(std::uint32_t value) {
    align(4);
    const le32 wire(value);
    append(bytes_of(wire));
}

void ndr_writer::u16(std::uint16_t value) {
    align(2);
    const le16 wire(value);
    append(bytes_of(wire));
}

void ndr_writer::pointer(bool present) {
    u32(present ? referent_ : 0);
    if (present) referent_ += 4;
}

void ndr_writer::text(std::string_view utf8) {
    const std::string units = utf16_of(utf8).value_or(std::string());
    const auto count = static_cast<std::uint32_t>(units.size() / 2 + 1);
    u32(count);
    u32(0);
    u32(count);
    append({reinterpret_cast<const std::byte*>(units.data()), units.size()});
    u16(0);
}

void ndr_writer::byte_array(bytes_view bytes) {
    u32(static_cast<std::uint32_t>(bytes.size()));
    append(bytes);
}

void ndr_writer::counted_text_head(std::string_view utf8) {
    const auto bytes = static_cast<std::uint16_t>(counted_units(utf8).size());
    align(4);
    u16(bytes);
    u16(bytes);
    pointer(bytes != 0);
}

void ndr_writer::counted_text(std::string_view utf8) {
    const std::string units = counted_units(utf8);
    if (units.empty()) return;
    const auto count = static_cast<std::uint32_t>(units.size() / 2);
    u32(count);
    u32(0);
    u32(count);
    append({reinterpret_cast<const std::byte*>(units.data()), units.size()});
}

void ndr_writer::sid_referent(const sid& who) {
    std::array<std::byte, 8 + sid::sub_authorities_max * 4> room;
    byte_writer writer{mutable_bytes(room)};
    encode(writer, who);
    u32(static_cast<std::uint32_t>(who.sub_authorities().size()));
    append(writer.finish().value());
}

void ndr_writer::align(std::size_t alignment) {
    while (bytes_.size() % alignment != 0 and !overflowed_)
        bytes_.push_back(std::byte{});
}

void ndr_writer::append(bytes_view more) {
    if (overflowed_ or more.size() > bytes_max_ - std::min(bytes_.size(), bytes_max_)) {
        overflowed_ = true;
        return;
    }
    bytes_.insert(bytes_.end(), more.begin(), more.end());
}

std::optional<std::uint32_t> ndr_reader::u32() noexcept {
    if (!reader_.align_to(4)) return std::nullopt;
    const auto wire = reader_.take<le32>();
    if (!wire) return std::nullopt;
    return wire->value();
}

std::optional<std::uint16_t> ndr_reader::u16() noexcept {
    if (!reader_.align_to(2)) return std::nullopt;
    const auto wire = reader_.take<le16>();
    if (!wire) return std::nullopt;
    return wire->value();
}

std::optional<bool> ndr_reader::pointer() noexcept {
    const auto referent = u32();
    if (!referent) return std::nullopt;
    return *referent != 0;
}

std::optional<std::string> ndr_reader::text() noexcept {
    const ndr_level inside(*this);
    if (!inside) return std::nullopt;
    const auto room = u32();
    const auto offset = u32();
    const auto count = u32();
    if (!room or !offset or !count or *offset != 0 or *count > *room) return std::nullopt;
    const auto units = reader_.take_bytes(std::uint64_t{*count} * 2);
    if (!units) return std::nullopt;
    auto utf8 = utf8_of(*units);
    if (!utf8) return std::nullopt;
    if (!utf8->empty() and utf8->back() == '\0') utf8->pop_back();
    return std::move(*utf8);
}

std::optional<bytes_view> ndr_reader::byte_array() noexcept {
    const auto count = u32();
    if (!count) return std::nullopt;
    const auto bytes = reader_.take_bytes(*count);
    if (!bytes) return std::nullopt;
    return *bytes;
}

std::optional<std::string> ndr_reader::pointed_text() noexcept {
    const auto present = pointer();
    if (!present) return std::nullopt;
    if (!*present) return std::string();
    return text();
}

std::optional<bytes_view> ndr_reader::raw(std::size_t length) noexcept {
    return reader_.take_bytes(length);
}

std::optional<ndr_counted_text> ndr_reader::counted_text_head() noexcept {
    if (!reader_.align_to(4)) return std::nullopt;
    const auto bytes = u16();
    const auto room = u16();
    const auto present = pointer();
    if (!bytes or !room or !present or *bytes % 2 != 0 or *bytes > *room) return std::nullopt;
    if (!*present and *bytes != 0) return std::nullopt;
    return ndr_counted_text{.bytes = *bytes, .is_present = *present};
}

std::optional<std::string> ndr_reader::counted_text(const ndr_counted_text& head) noexcept {
    if (!head.is_present) return std::string();
    const std::size_t before = reader_.position();
    auto content = text();
    if (!content) return std::nullopt;
    // The text is the last part of the referent: what the string counts must be what it has.
    const std::size_t padding = -before & 3;
    if (reader_.position() - before - padding != 3 * sizeof(le32) + head.bytes) return std::nullopt;
    return content;
}

std::optional<sid> ndr_reader::sid_referent() noexcept {
    const ndr_level inside(*this);
    const auto count = u32();
    if (!inside or !count or *count > sid::sub_authorities_max) return std::nullopt;
    const auto who = take_sid(reader_);
    if (!who or who->sub_authorities().size() != *count) return std::nullopt;
    return *who;
}

std::optional<std::uint32_t> ndr_reader::array_count(std::uint32_t expected) noexcept {
    const auto count = u32();
    if (!count or *count != expected or *count > limits_.elements_max) return std::nullopt;
    return count;
}

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

#include <algorithm>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {

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

std::optional<bool> ndr_reader::pointer() noexcept {
    const auto referent = u32();
    if (!referent) return std::nullopt;
    return *referent != 0;
}

std::optional<std::string> ndr_reader::text() noexcept {
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

}  // namespace sluice::smb::wire

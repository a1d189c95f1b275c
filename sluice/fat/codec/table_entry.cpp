#include "sluice/fat/codec/table_entry.hpp"

#include "sluice/base/endian.hpp"

namespace sluice::fat {
namespace {

// Returns the position of the entry in the piece, or std::nullopt if it begins before the piece.
// take_at checks whether it ends inside.
std::optional<std::uint64_t> position_in(fat_type type, std::uint32_t cluster,
                                         std::uint64_t first_byte) noexcept {
    const byte_extent extent = entry_extent(type, cluster);
    if (extent.offset < first_byte) return std::nullopt;
    return extent.offset - first_byte;
}

// FAT12 uses the upper 12 of the 16 bits for odd clusters, and the lower 12 for even ones.
std::uint32_t unpack12(std::uint16_t pair, std::uint32_t cluster) noexcept {
    return cluster % 2 == 1 ? pair >> 4 : pair & 0xfffU;
}

std::uint16_t pack12(std::uint16_t pair, std::uint32_t cluster, std::uint32_t value) noexcept {
    return static_cast<std::uint16_t>(cluster % 2 == 1 ? (pair & 0xfU) | value << 4
                                                       : (pair & 0xf000U) | value);
}

template <class Wire>
bool put(mutable_bytes bytes, std::uint64_t position, Wire wire) noexcept {
    const auto place = bytes.slice({.offset = position, .length = sizeof(Wire)});
    if (not place) return false;
    std::memcpy(place->data(), &wire, sizeof(Wire));
    return true;
}

}  // namespace

std::optional<std::uint32_t> read_entry(fat_type type, bytes_view bytes, std::uint32_t cluster,
                                        std::uint64_t first_byte) noexcept {
    const auto position = position_in(type, cluster, first_byte);
    if (not position) return std::nullopt;
    if (type == fat_type::fat32) {
        const auto wire = bytes.take_at<le32>(*position);
        if (not wire) return std::nullopt;
        return wire->value() & entry_mask(type);
    }
    const auto wire = bytes.take_at<le16>(*position);
    if (not wire) return std::nullopt;
    return type == fat_type::fat16 ? wire->value() : unpack12(wire->value(), cluster);
}

bool write_entry(fat_type type, table_piece piece, std::uint32_t cluster, std::uint32_t value) noexcept {
    ENSURE((value & ~entry_mask(type)) == 0);
    const auto position = position_in(type, cluster, piece.first_byte);
    if (not position) return false;
    if (type == fat_type::fat16) return put(piece.bytes, *position, le16(static_cast<std::uint16_t>(value)));
    if (type == fat_type::fat32) {
        const auto before = bytes_view(piece.bytes.span()).take_at<le32>(*position);
        if (not before) return false;
        return put(piece.bytes, *position, le32((before->value() & ~entry_mask(type)) | value));
    }
    const auto before = bytes_view(piece.bytes.span()).take_at<le16>(*position);
    if (not before) return false;
    return put(piece.bytes, *position, le16(pack12(before->value(), cluster, value)));
}

}  // namespace sluice::fat

#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"

// Entries of the file allocation table. FAT12 has 12 bits, which share bytes and straddle sectors;
// FAT16 has 16 bits; FAT32 has 28 bits, and its upper four bits are reserved and preserved.

namespace sluice::fat {

enum class fat_type : std::uint8_t { fat12, fat16, fat32 };

/// Returns the number of significant bits of an entry: 12, 16, 28.
[[nodiscard]] constexpr unsigned entry_bits(fat_type type) noexcept {
    return type == fat_type::fat12 ? 12 : type == fat_type::fat16 ? 16 : 28;
}
[[nodiscard]] constexpr std::uint32_t entry_mask(fat_type type) noexcept {
    return (std::uint32_t{1} << entry_bits(type)) - 1;
}

/// Reserved values. The end of a chain is written as all ones.
inline constexpr std::uint32_t free_entry = 0;
[[nodiscard]] constexpr std::uint32_t end_entry(fat_type type) noexcept {
    return entry_mask(type);
}
[[nodiscard]] constexpr std::uint32_t bad_entry(fat_type type) noexcept {
    return entry_mask(type) - 8;
}

/// Bits of FAT[1] on FAT16 and FAT32: set while the volume is clean; set while the device has had
/// no errors. 0 for FAT12, which has neither.
[[nodiscard]] constexpr std::uint32_t clean_bit(fat_type type) noexcept {
    return type == fat_type::fat12 ? 0 : std::uint32_t{1} << (entry_bits(type) - 1);
}
[[nodiscard]] constexpr std::uint32_t no_error_bit(fat_type type) noexcept {
    return clean_bit(type) >> 1;
}

enum class entry_kind : std::uint8_t {
    free,
    next,     ///< the number of the cluster that follows
    end,      ///< the end of a chain: all ones, or up to 7 less
    bad,      ///< not to be used
    invalid,  ///< 1, or a number after the last cluster: damage
};

struct table_entry {
    entry_kind kind = entry_kind::free;
    std::uint32_t next = 0;  // of kind next only: a cluster of the volume

    [[nodiscard]] friend constexpr bool operator==(table_entry, table_entry) noexcept = default;
};

/// Classifies `value`, an entry without reserved bits, on a volume whose last cluster is
/// `last_cluster`.
[[nodiscard]] constexpr table_entry classify(fat_type type, std::uint32_t value,
                                             std::uint32_t last_cluster) noexcept {
    if (value == free_entry) return {.kind = entry_kind::free};
    if (value > bad_entry(type)) return {.kind = entry_kind::end};
    if (value == bad_entry(type)) return {.kind = entry_kind::bad};
    if (value < 2 or value > last_cluster) return {.kind = entry_kind::invalid};
    return {.kind = entry_kind::next, .next = value};
}

/// Returns the bytes of a FAT that hold the entry of `cluster`: 2, 2 or 4 of them. In FAT12, half a
/// byte of the two belongs to a neighbour.
[[nodiscard]] constexpr byte_extent entry_extent(fat_type type, std::uint32_t cluster) noexcept {
    const std::uint64_t number = cluster;
    switch (type) {
        case fat_type::fat12:
            return {.offset = number + number / 2, .length = 2};
        case fat_type::fat16:
            return {.offset = number * 2, .length = 2};
        case fat_type::fat32:
            break;
    }
    return {.offset = number * 4, .length = 4};
}

/// Returns the number of entries, counted from 0, that lie completely in a FAT of `fat_bytes`
/// bytes.
[[nodiscard]] constexpr std::uint64_t entries_in(fat_type type, std::uint64_t fat_bytes) noexcept {
    switch (type) {
        case fat_type::fat12:
            return fat_bytes / 3 * 2 + (fat_bytes % 3 == 2 ? 1 : 0);
        case fat_type::fat16:
            return fat_bytes / 2;
        case fat_type::fat32:
            break;
    }
    return fat_bytes / 4;
}

/// Returns the number of bytes that `entries` entries of a FAT take, rounded up. `entries` fits 32
/// bits.
[[nodiscard]] constexpr std::uint64_t bytes_of_entries(fat_type type, std::uint64_t entries) noexcept {
    return type == fat_type::fat12 ? (entries * 3 + 1) / 2 : entries * (type == fat_type::fat16 ? 2 : 4);
}

/// A piece of a FAT: `bytes` are located at `first_byte` of the FAT. The rest of the FAT need not
/// be in memory; entry_extent returns the range that holds an entry.
struct table_piece {
    mutable_bytes bytes;
    std::uint64_t first_byte = 0;
};

/// Returns the value of `cluster`'s entry, 12, 16 or 28 bits, or std::nullopt if it does not lie
/// completely in the piece.
/// Allocates: nothing. Complexity: O(1). Thread safety: reads `bytes`.
[[nodiscard]] std::optional<std::uint32_t> read_entry(fat_type type, bytes_view bytes, std::uint32_t cluster,
                                                      std::uint64_t first_byte = 0) noexcept;

/// Sets the entry and preserves the other bits: FAT12's neighbour, FAT32's upper bits. `value` has
/// no more bits than an entry. Returns false, and writes nothing, if the entry does not lie
/// completely in `piece`.
[[nodiscard]] bool write_entry(fat_type type, table_piece piece, std::uint32_t cluster,
                               std::uint32_t value) noexcept;

}  // namespace sluice::fat

#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"

// Entries of the file allocation table: FAT12's 12 bits, which share bytes and straddle sectors, FAT16's 16
// and FAT32's 28, whose upper four bits belong to nobody and are kept.

namespace sluice::fat {

enum class fat_type : std::uint8_t { fat12, fat16, fat32 };

/// Bits of an entry that mean something: 12, 16, 28.
[[nodiscard]] constexpr unsigned entry_bits(fat_type type) noexcept {
    return type == fat_type::fat12 ? 12 : type == fat_type::fat16 ? 16 : 28;
}
[[nodiscard]] constexpr std::uint32_t entry_mask(fat_type type) noexcept {
    return (std::uint32_t{1} << entry_bits(type)) - 1;
}

/// Values with a meaning of their own. What is written as the end of a chain is all ones.
inline constexpr std::uint32_t free_entry = 0;
[[nodiscard]] constexpr std::uint32_t end_entry(fat_type type) noexcept {
    return entry_mask(type);
}
[[nodiscard]] constexpr std::uint32_t bad_entry(fat_type type) noexcept {
    return entry_mask(type) - 8;
}

/// In FAT[1] of FAT16 and FAT32: set while the volume is clean; set while the medium had no errors. 0 for
/// FAT12, which has neither.
[[nodiscard]] constexpr std::uint32_t clean_bit(fat_type type) noexcept {
    return type == fat_type::fat12 ? 0 : std::uint32_t{1} << (entry_bits(type) - 1);
}
[[nodiscard]] constexpr std::uint32_t no_error_bit(fat_type type) noexcept {
    return clean_bit(type) >> 1;
}

enum class entry_kind : std::uint8_t {
    free,
    next,     ///< the number of the cluster that follows
    end,      ///< the last of a chain: any value from all ones less 7
    bad,      ///< not to be used
    invalid,  ///< 1, or a number beyond the last cluster: damage
};

struct table_entry {
    entry_kind kind = entry_kind::free;
    std::uint32_t next = 0;  // of kind next only: a cluster of the volume

    [[nodiscard]] friend constexpr bool operator==(table_entry, table_entry) noexcept = default;
};

/// What `value`, an entry without foreign bits, says on a volume whose last cluster is `last_cluster`.
[[nodiscard]] constexpr table_entry classify(fat_type type, std::uint32_t value,
                                             std::uint32_t last_cluster) noexcept {
    if (value == free_entry) return {.kind = entry_kind::free};
    if (value > bad_entry(type)) return {.kind = entry_kind::end};
    if (value == bad_entry(type)) return {.kind = entry_kind::bad};
    if (value < 2 or value > last_cluster) return {.kind = entry_kind::invalid};
    return {.kind = entry_kind::next, .next = value};
}

/// Which bytes of a FAT hold the entry of `cluster`: 2, 2 or 4 of them. Of FAT12's two, half a byte is a
/// neighbour's.
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

/// How many entries, counted from 0, lie wholly in a FAT of that many bytes.
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

/// How many bytes of a FAT that many entries take, rounded up to whole bytes. `entries` fits 32 bits.
[[nodiscard]] constexpr std::uint64_t bytes_of_entries(fat_type type, std::uint64_t entries) noexcept {
    return type == fat_type::fat12 ? (entries * 3 + 1) / 2 : entries * (type == fat_type::fat16 ? 2 : 4);
}

/// A piece of a FAT: `bytes` stand at `first_byte` of it. Not all of the FAT need be in memory; which pieces
/// hold an entry says entry_extent.
struct table_piece {
    mutable_bytes bytes;
    std::uint64_t first_byte = 0;
};

/// The value of `cluster`'s entry, 12, 16 or 28 bits; nothing if it does not lie wholly in `piece`.
/// Allocates: nothing. Complexity: O(1). Thread safety: reads `bytes`.
[[nodiscard]] std::optional<std::uint32_t> read_entry(fat_type type, bytes_view bytes, std::uint32_t cluster,
                                                      std::uint64_t first_byte = 0) noexcept;

/// Sets it, keeping what is not the entry's: FAT12's neighbour, FAT32's upper bits. `value` has no more bits
/// than an entry. False, and nothing written, if the entry does not lie wholly in `piece`.
[[nodiscard]] bool write_entry(fat_type type, table_piece piece, std::uint32_t cluster,
                               std::uint32_t value) noexcept;

}  // namespace sluice::fat

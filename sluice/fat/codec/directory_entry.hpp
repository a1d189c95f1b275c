#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

// One slot of a directory: 32 bytes with a file, a directory, the volume's label, or a piece of a
// long name (long_name.hpp), or free. docs/formats/fat.md has the layout.

namespace sluice::fat {

/// The attribute byte.
enum class attributes : std::uint8_t {
    none = 0,
    read_only = 0x01,
    hidden = 0x02,
    system = 0x04,
    label = 0x08,
    directory = 0x10,
    archive = 0x20,
    long_name = 0x0f,  // all four of read_only, hidden, system, label: not a separate entry
};
[[nodiscard]] constexpr attributes operator|(attributes a, attributes b) noexcept {
    return static_cast<attributes>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr attributes operator&(attributes a, attributes b) noexcept {
    return static_cast<attributes>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
[[nodiscard]] constexpr bool has(attributes set, attributes wanted) noexcept {
    return (set & wanted) != attributes::none;
}

/// The eleven bytes of a short name in the on-disk form: eight and three, padded with spaces.
using short_name_bytes = std::array<unsigned char, 11>;

// clang-format off
/// Invariant: any 32 bytes are valid; the constructor and reads check nothing.
struct directory_entry {
    short_name_bytes name{};            //  0  [0]: 0 the end, 0xe5 free, 0x05
                                        //     stands for a first 0xe5
    le8              attribute_bits;    // 11
    le8              case_bits;         // 12  see short_name.hpp; the other bits
                                        //     belong to other systems
    le8              created_10ms;      // 13  0 to 199
    le16             created_time;      // 14
    le16             created_date;      // 16
    le16             accessed_date;     // 18
    le16             first_cluster_high; // 20 of FAT32 only; OS/2 uses it on FAT12 and FAT16
    le16             modified_time;     // 22
    le16             modified_date;     // 24
    le16             first_cluster_low; // 26
    le32             size_bytes;        // 28  0 for directories
};
// clang-format on
inline constexpr std::size_t slot_bytes = 32;
static_assert(sizeof(directory_entry) == slot_bytes and alignof(directory_entry) == 1);
static_assert(offsetof(directory_entry, first_cluster_high) == 20);
static_assert(offsetof(directory_entry, size_bytes) == 28);
static_assert(std::is_trivially_copyable_v<directory_entry>);

/// The first byte of a slot.
inline constexpr unsigned char end_mark = 0x00;
inline constexpr unsigned char free_mark = 0xe5;
inline constexpr unsigned char e5_substitute = 0x05;

enum class slot_kind : std::uint8_t {
    end,   ///< never used, and neither is any later slot
    free,  ///< was used
    long_name,
    label,
    dots,  ///< `.` or `..`
    file,
    directory,
};

/// Returns the kind of a slot. Allocates: nothing. Complexity: constant.
[[nodiscard]] slot_kind kind_of(const directory_entry& slot) noexcept;

/// The width of cluster numbers: more than 16 bits on FAT32.
enum class cluster_width : bool { two_bytes, four_bytes };

/// Returns the first cluster of the entry; 0: none. On FAT32, the lower 28 bits: the others are
/// reserved.
[[nodiscard]] std::uint32_t first_cluster(const directory_entry& slot, cluster_width width) noexcept;
/// Sets the first cluster. On FAT12 and FAT16, preserves the high word, which has another meaning
/// there.
void set_first_cluster(directory_entry& slot, std::uint32_t cluster, cluster_width width) noexcept;

}  // namespace sluice::fat

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/fat/device.hpp"

namespace sluice::fat {

enum class partition_scheme : std::uint8_t {
    none,  ///< no table: a volume occupies the whole image
    mbr,
    gpt,
};

struct partition {
    std::uint32_t number = 0;
    byte_extent range;          // bytes, inside the image
    bool is_cut = false;        // according to the table it reaches past the end of the image
    std::uint8_t mbr_type = 0;  // MBR only: 1, 4, 6, 0xb, 0xc, 0xe, 0xef mean FAT
    std::string type;           // text to display: "FAT32 (LBA)", "EFI system", or a GUID
    std::u16string name;        // GPT only
};

struct partition_table {
    partition_scheme scheme = partition_scheme::none;
    bool is_backup = false;  // GPT only: the first copy was damaged
    std::vector<partition> partitions;

    /// Returns null if there is no partition with that number.
    [[nodiscard]] const partition* find(std::uint32_t number) const noexcept;
};

/// Returns a partition for the part of `range` inside the image; std::nullopt if there is none.
[[nodiscard]] std::optional<partition> partition_inside(const device& image, byte_extent range) noexcept;

}  // namespace sluice::fat

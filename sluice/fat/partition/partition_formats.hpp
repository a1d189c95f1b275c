#pragma once

#include <array>
#include <cstddef>

#include "sluice/base/endian.hpp"
#include "sluice/fat/partition/partition_table.hpp"

namespace sluice::fat {

/// One of the four slots of a master (or extended) boot record.
struct mbr_slot {
    le8 status;                          //  0  0x80: active; other values than
                                         //     this and 0 are invalid
    std::array<std::byte, 3> first_chs;  //  1
    le8 type;                            //  4  0: free
    std::array<std::byte, 3> last_chs;   //  5
    le32 first_sector;                   //  8
    le32 sectors;                        // 12
};
static_assert(sizeof(mbr_slot) == 16 and alignof(mbr_slot) == 1);

struct mbr_sector {
    std::array<std::byte, 446> code;  //   0
    std::array<mbr_slot, 4> slots;    // 446
    le16 signature;                   // 510  0xaa55
};
static_assert(sizeof(mbr_sector) == 512 and offsetof(mbr_sector, slots) == 446);

inline constexpr std::uint8_t mbr_type_gpt = 0xee;

/// Returns whether the sector can be a master boot record: it has the signature, every slot is
/// active or inactive, and at least one is in use.
[[nodiscard]] bool is_mbr(const mbr_sector& sector) noexcept;

/// Reads the partitions of a master boot record in sectors of 512 bytes, and follows the chain of
/// extended boot records. Errors, Blocks: as device::read_at. Allocates: the partitions.
[[nodiscard]] result<std::vector<partition>> read_mbr(device& image, const mbr_sector& master);

/// Reads a GPT or, if it is damaged, the backup at the end of the image. Returns a table of scheme
/// none if neither is intact. Tries sectors of 512 and of 4,096 bytes. Errors, Blocks: as
/// device::read_at. Allocates: the partitions, and temporarily up to limits::gpt_array_bytes_max
/// bytes.
[[nodiscard]] result<partition_table> read_gpt(device& image);

}  // namespace sluice::fat

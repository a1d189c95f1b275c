#pragma once

#include <array>
#include <string>
#include <vector>

#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/codec/boot_sector.hpp"

// Evidence on a volume for and against the boot sector that describes it. A boot sector with one
// wrong field is still legal; only the rest of the volume shows that it is wrong.

namespace sluice::fat {

/// The kinds of evidence. The first three are strong: they compare the boot sector
/// with data of the volume.
enum class evidence_kind : std::uint8_t {
    fat_start,  ///< every copy of the FAT begins with a media byte and an end mark
    root,       ///< the root directory looks like one
    tree,       ///< files, directories and chains fit together
    copies,     ///< the copies of the FAT are alike
    length,     ///< the FAT is as long as the clusters need
    tail,       ///< the FAT has no cluster in use after the last
    image,      ///< the volume is as long as the image or partition
    info,       ///< FSInfo is where it should be, and counts right
    rules,      ///< fields that must be 0 are 0, and the type has its name
};
inline constexpr std::size_t evidence_kinds = 9;
[[nodiscard]] constexpr bool is_strong(evidence_kind kind) noexcept {
    return kind <= evidence_kind::tree;
}

/// The evidence for one boot sector. A plain value.
struct boot_evidence {
    struct item {
        unsigned badness = 0;  // 0: as it should be; more is worse
        std::string text;      // the observation, a clause
    };
    std::array<item, evidence_kinds> items;
    std::int64_t consistent = 0;  // files and directories
    std::int64_t damaged = 0;
    std::int64_t lost = 0;  // chains

    [[nodiscard]] const item& of(evidence_kind kind) const noexcept {
        return items[static_cast<std::size_t>(kind)];
    }
};

/// Gathers the evidence for `sector`, whose geometry is `shape`. `found` is the report of a check
/// of the volume with this geometry (check_as). Errors: none; unreadable parts count against the
/// sector. Allocates: texts, and the FAT. Blocks: for the device. Complexity: linear in the FAT.
[[nodiscard]] boot_evidence gather_evidence(device& image, const boot_sector& sector, const geometry& shape,
                                            const check_report& found);

/// The boot sector of two that the evidence supports.
enum class preference : std::uint8_t { neither, first, second };

/// Compares the evidence for two boot sectors of one volume. One is preferred if strong
/// evidence is for it and none for the other, or if there is no strong evidence and all
/// other evidence is for it.
[[nodiscard]] preference compare(const boot_evidence& first, const boot_evidence& second) noexcept;

/// Returns the evidence in which `better` is better than `worse`, in words.
[[nodiscard]] std::vector<std::string> differences(const boot_evidence& better, const boot_evidence& worse,
                                                   const char* better_name, const char* worse_name);

/// Returns the contradictions between a volume and its only boot sector, in words; empty if the
/// boot sector can be relied on. One contradiction alone is damage of that part. `found` is the
/// same report as for gather_evidence.
[[nodiscard]] std::vector<std::string> contradictions(const boot_evidence& evidence,
                                                      const check_report& found);

}  // namespace sluice::fat

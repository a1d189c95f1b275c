#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/fat/codec/boot_fields.hpp"
#include "sluice/fat/codec/geometry.hpp"

// The result of a check: a list of problems, each with its object and its location, so that repair
// need not search again.

namespace sluice::fat {

/// Each kind has its sentence in check_report.cpp and its remedy in repair.cpp.
enum class problem_kind : std::uint8_t {
    boot_sector_bad,       // the boot sector has wrong fields, its backup has not
    boot_sector_doubtful,  // the volume contradicts its boot sector, and no backup is
                           // better: nothing is repaired
    backup_differs,        // unusual: copy of the boot sector
    image_is_short,        // value: bytes of the volume; expected: bytes of the image
    fats_differ,           // value: copy; cluster: the first that differs
    media_differs,         // value: FAT[0]; expected: what it should be
    dirty,                 // the volume was not unmounted, or is in use
    medium_errors,         // unusual: a driver has found errors of the device
    info_sector_bad,       // FSInfo has no signatures
    free_count_wrong,      // value: FSInfo's; expected: counted
    root_start_bad,        // FAT32: the root's first cluster is invalid
    bad_start,             // value: first cluster
    chain_broken,          // cluster: the last good; value: the next one, which is
                           // free, bad or invalid
    chain_loop,            // cluster: the last; value: the earlier one that it leads to
    cross_link,            // cluster: the last before; value: the shared one; other: its owner
    chain_too_short,       // value: clusters; expected: clusters for the size
    chain_too_long,        // the same; cluster: the last needed, 0 if none
    directory_unreadable,  // the device cannot read it: its entries are unknown
    directory_has_size,    // value: the size
    directory_too_large,   // more than 65,536 slots
    dot_missing,           // `.` or `..` is not in its slot
    dot_wrong,             // value: where it leads; expected: where it must
    dot_malformed,         // value: attributes; not a directory, or with a size
    dot_misplaced,         // `.` or `..` in another slot
    bad_short_name,
    duplicate_name,
    orphan_long_name,  // value: how many slots
    misplaced_label,
    second_label,
    label_differs,  // unusual: root directory and boot sector name the volume differently
    lost_clusters,  // value: how many; expected: in how many chains
};

enum class severity : std::uint8_t {
    unusual,  // legal, and all implementations accept it
    damage,
};

struct problem {
    problem_kind kind{};
    std::string path = {};   // path of the object; empty: the volume
    std::string other = {};  // for cross_link
    std::uint32_t cluster = 0;
    std::uint64_t value = 0;
    std::uint64_t expected = 0;
    std::uint64_t slot_offset = 0;  // bytes from the start of the volume: its
                                    // directory entry; 0: none
    std::uint64_t first_slot = 0;   // the same for its first long-name slot; 0: none

    [[nodiscard]] severity weight() const noexcept;
    /// Returns one sentence. Allocates: the string.
    [[nodiscard]] std::string message() const;
};

/// Returns the name of a kind in JSON and documents: "cross_link".
[[nodiscard]] const char* name_of(problem_kind kind) noexcept;

struct check_report {
    std::optional<geometry> shape;         // none: no volume, see `refusal`
    std::string refusal;                   // the reason why there is none
    std::optional<boot_restoration> boot;  // with boot_sector_bad: what repair would write
    std::vector<problem> problems;         // at most as many as the options allow
    std::uint64_t problems_left_out = 0;
    std::uint64_t files = 0;
    std::uint64_t directories = 0;  // without the root
    std::uint64_t used_clusters = 0;
    std::uint64_t free_clusters = 0;
    std::uint64_t bad_clusters = 0;

    /// Returns whether there is no damage; unusual problems do not count.
    [[nodiscard]] bool is_consistent() const noexcept;
    [[nodiscard]] bool has(problem_kind kind) const noexcept;
};

/// Returns text to display: the changes that repair would make to the boot sector, with reasons,
/// one per line; empty if there are none.
/// Allocates: the string.
[[nodiscard]] std::string boot_text_of(const check_report& report);
/// Returns text to display: a line per problem, then a summary. Allocates: the string.
[[nodiscard]] std::string text_of(const check_report& report);
/// Returns JSON: one object; docs/guide/fat.md lists its fields. Allocates: the string.
[[nodiscard]] std::string json_of(const check_report& report);
/// The same for a check that failed. Allocates: the string.
[[nodiscard]] std::string json_of_failure(const error& why);

}  // namespace sluice::fat

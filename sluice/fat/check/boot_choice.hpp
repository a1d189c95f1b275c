#pragma once

#include <expected>
#include <optional>

#include "sluice/fat/check/boot_evidence.hpp"
#include "sluice/fat/check/check_options.hpp"
#include "sluice/fat/check/check_report.hpp"

// Which boot sector describes a volume: the first sector, or its backup.

namespace sluice::fat {

/// A sector that may be the boot sector.
struct boot_candidate {
    boot_sector sector{};
    std::uint64_t offset = 0;  // bytes from the start of the volume
    std::expected<geometry, boot_problem> shape = std::unexpected(boot_problem{});
};

/// The last two bytes of a boot sector.
inline constexpr std::uint16_t boot_signature = 0xaa55;
/// Where most programs place the backup of the boot sector, in sectors.
inline constexpr std::uint64_t usual_backup_sector = 6;

/// Returns whether everything that a check or repair examines is in the same places.
[[nodiscard]] bool is_alike(const geometry& a, const geometry& b) noexcept;

/// Finds the backup of the boot sector of FAT32. That is a legal boot sector in sectors 1 to
/// 31, for any size of sectors, that says of itself where it is, and is inside the sectors
/// that it reserves. A sector at number 6, where everyone puts it, or where the first sector
/// says, need not name its place. Returns std::nullopt if there is none. Allocates: 128 KiB.
/// Blocks: for the device.
[[nodiscard]] std::optional<boot_candidate> find_backup(device& image, const boot_sector& first);

/// Decides which boot sector to believe, and checks the volume with it.
///
/// Rules:
///   1. A boot sector that is the only one is believed unless the volume
///      contradicts it more than once.
///   2. If boot sector and backup place everything alike, the first is believed. A field that has
///   an illegal value, or
///      one that the volume contradicts, is taken from the backup.
///   3. If they place things differently, the one is believed that the evidence prefers. Without a
///   preference neither is.
///   4. A backup is not believed against strong evidence.
/// Nothing is repaired on a volume whose boot sector is not believed.
/// Thread safety: none of its own.
class boot_choice {
public:
    /// `image` outlives it.
    boot_choice(device& image, const check_options& options) noexcept : image_(image), options_(options) {}

    /// Errors, Allocates, Blocks: as fat::check.
    [[nodiscard]] result<check_report> check();

private:
    result<check_report> check_first_only();
    result<check_report> check_alike();
    result<check_report> check_different();
    result<check_report> check_backup_only();
    result<check_report> examine(const boot_candidate& candidate);
    boot_evidence evidence_for(const boot_candidate& candidate, const check_report& report);

    void take_field(const char* key, std::string why);
    void begin_restoration();
    void take_marks();
    void take_wrong_fields();
    void take_all(const std::vector<std::string>& evidence);
    void restore(check_report& report) const;
    void report_difference(check_report& report) const;

    device& image_;
    check_options options_;
    boot_candidate first_;
    std::optional<boot_candidate> backup_;
    boot_restoration restoration_;
};

}  // namespace sluice::fat

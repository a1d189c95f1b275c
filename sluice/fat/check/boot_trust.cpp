#include "sluice/fat/check/boot_trust.hpp"

#include <optional>

#include "sluice/fat/check/boot_choice.hpp"

namespace sluice::fat {
namespace {

std::optional<boot_sector> sector_at(device& image, std::uint64_t offset) {
    std::array<std::byte, sizeof(boot_sector)> bytes{};
    if (not image.read_at(offset, std::span<std::byte>(bytes))) return std::nullopt;
    return bytes_view(bytes).take<boot_sector>();
}

bool may_be_fat32(device& image, std::uint64_t offset) {
    const auto sector = sector_at(image, offset);
    if (not sector or sector->signature.value() != boot_signature) return false;
    const auto shape = decode_boot_sector(*sector, image.size_bytes());
    return shape and shape->type == fat_type::fat32;
}

// Whether a few sectors show that there is nothing to decide.
bool agrees_at_once(device& image, const geometry& shape) {
    if (shape.type != fat_type::fat32) {
        for (const std::uint64_t sector_bytes : {512U, 1024U, 2048U, 4096U})
            if (may_be_fat32(image, usual_backup_sector * sector_bytes)) return false;
        return true;
    }
    const auto backup = shape.backup_offset ? sector_at(image, *shape.backup_offset) : std::nullopt;
    if (not backup or backup->signature.value() != boot_signature) return false;
    const auto other = decode_boot_sector(*backup, image.size_bytes());
    return other and is_alike(shape, *other);
}

std::string differences_of(const boot_sector& first, const boot_sector& backup) {
    std::string text;
    for (const boot_field& each : boot_fields())
        if (each.role == field_role::layout and not is_same(first, backup, each))
            text += (text.empty() ? "" : ", ") + std::string(each.name) + " " +
                    std::to_string(value_of(first, each)) + " instead of " +
                    std::to_string(value_of(backup, each));
    return text;
}

boot_trust trust_of(const result<check_report>& report) {
    if (not report or report->has(problem_kind::boot_sector_doubtful)) return boot_trust::doubtful;
    return report->boot or not report->shape ? boot_trust::wrong : boot_trust::consistent;
}

bool is_another_file_system(const boot_problem& problem) noexcept {
    return problem.fault == boot_fault::is_exfat or problem.fault == boot_fault::is_ntfs;
}

}  // namespace

std::expected<boot_verdict, std::string> assess_boot_sector(device& image, check_options options) {
    const auto shape = read_geometry(image);
    if (shape and agrees_at_once(image, *shape)) return boot_verdict{.shape = *shape};
    const boot_sector first = sector_at(image, 0).value_or(boot_sector{});
    const auto backup = find_backup(image, first);
    if (not shape) {
        std::string why = shape.error().message();
        if (backup and not is_another_file_system(shape.error()))
            why += "; byte " + std::to_string(backup->offset) + " has a backup of the boot sector";
        return std::unexpected(std::move(why));
    }
    boot_verdict verdict{.shape = *shape};
    if (not backup or is_alike(*shape, *backup->shape)) return verdict;
    options.boot = boot_source::evidence;
    verdict.trust = trust_of(check(image, options));
    if (verdict.trust != boot_trust::consistent) verdict.differences = differences_of(first, backup->sector);
    return verdict;
}

result<bool> copy_to_backup(device& image) {
    const auto shape = read_geometry(image);
    const auto first = sector_at(image, 0);
    if (not shape or not first) return false;
    const auto backup = find_backup(image, *first);
    if (not backup or is_alike(*shape, *backup->shape)) return false;
    if (const auto done = image.write_at(backup->offset, bytes_of(*first).span()); not done)
        return failure(done.error());
    return true;
}

}  // namespace sluice::fat

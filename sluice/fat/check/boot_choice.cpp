#include "sluice/fat/check/boot_choice.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/geometry_check.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t sectors_inspected = 32;
// A sector with more wrong fields was overwritten; nothing else in it is kept.
constexpr std::size_t wrong_fields_max = 3;

constexpr const char* first_name = "the boot sector";
constexpr const char* backup_name = "its backup";

bool is_jump(const boot_sector& sector) noexcept {
    return (sector.jump[0] == std::byte{0xeb} and sector.jump[2] == std::byte{0x90}) or
           sector.jump[0] == std::byte{0xe9};
}

bool has_extended_signature(const boot_sector& sector) noexcept {
    const std::uint8_t signature = fat32_fields_of(sector).extended.signature.value();
    return signature == 0x29 or signature == 0x28;
}

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& each : texts)
        all += (all.empty() ? "" : "; ") + each;
    return all;
}

void add_doubt(check_report& report, std::string why) {
    problem doubt{.kind = problem_kind::boot_sector_doubtful};
    doubt.other = std::move(why);
    report.problems.insert(report.problems.begin(), std::move(doubt));
}

bool has_info_at(device& image, const geometry& shape) noexcept {
    std::array<std::byte, sizeof(info_sector)> bytes{};
    return shape.info_offset and image.read_at(*shape.info_offset, std::span<std::byte>(bytes)) and
           decode_info(*bytes_view(bytes).take<info_sector>(), shape).has_value();
}

// Of FAT[0], as far as it repeats the media byte.
std::optional<std::uint8_t> media_in_fat(device& image, const geometry& shape) noexcept {
    std::array<std::byte, 1> byte{};
    if (not image.read_at(shape.fat_copy_offset(shape.active_fat), std::span<std::byte>(byte)))
        return std::nullopt;
    return static_cast<std::uint8_t>(byte[0]);
}

std::optional<boot_candidate> backup_at(bytes_view bytes, std::uint64_t number, std::uint32_t sector_bytes,
                                        const boot_sector& first, std::uint64_t device_bytes) {
    const auto sector = bytes.take_at<boot_sector>(number * sector_bytes);
    if (not sector or sector->signature.value() != boot_signature) return std::nullopt;
    boot_candidate found{.sector = *sector,
                         .offset = number * sector_bytes,
                         .shape = decode_boot_sector(*sector, device_bytes)};
    if (not found.shape or found.shape->type != fat_type::fat32 or
        found.shape->sector_bytes != sector_bytes or sector->reserved_sectors.value() <= number)
        return std::nullopt;
    const bool is_expected =
        number == usual_backup_sector or number == fat32_fields_of(first).backup_sector.value();
    const bool names_itself = fat32_fields_of(*sector).backup_sector.value() == number;
    return names_itself or is_expected ? std::optional(found) : std::nullopt;
}

}  // namespace

bool is_alike(const geometry& a, const geometry& b) noexcept {
    const auto places = [](const geometry& of) {
        return std::tuple(of.type, of.sector_bytes, of.cluster_bytes, of.cluster_count, of.fat_offset,
                          of.fat_bytes, of.fat_count, of.active_fat, of.is_mirrored, of.root_offset,
                          of.root_entries, of.root_cluster, of.data_offset);
    };
    return places(a) == places(b);
}

std::optional<boot_candidate> find_backup(device& image, const boot_sector& first) {
    std::vector<std::byte> room(std::min<std::uint64_t>(image.size_bytes(), sectors_inspected * 4096));
    if (not image.read_at(0, std::span(room))) {
        // The medium has bad sectors: read each sector alone.
        for (std::uint64_t at = 0; at + sizeof(boot_sector) <= room.size(); at += sizeof(boot_sector)) {
            const auto piece = std::span(room).subspan(at, sizeof(boot_sector));
            if (not image.read_at(at, piece)) std::ranges::fill(piece, std::byte{});
        }
    }
    for (const std::uint32_t sector_bytes : {512U, 1024U, 2048U, 4096U})
        for (std::uint64_t number = 1; number != sectors_inspected; ++number)
            if (auto found = backup_at(room, number, sector_bytes, first, image.size_bytes())) return found;
    return std::nullopt;
}

result<check_report> boot_choice::check() {
    std::array<std::byte, sizeof(boot_sector)> bytes{};
    if (const auto done = image_.read_at(0, std::span<std::byte>(bytes)); done) {
        first_.sector = *bytes_view(bytes).take<boot_sector>();
        first_.shape = decode_boot_sector(first_.sector, image_.size_bytes());
    } else {
        first_.shape = read_geometry(image_);
    }
    backup_ = find_backup(image_, first_.sector);
    const bool is_forced_first = options_.boot == boot_source::first;
    if (first_.shape and (is_forced_first or not backup_)) return check_first_only();
    // Another file system names itself: a backup of FAT is what its format left over.
    const bool is_other = not first_.shape and (first_.shape.error().fault == boot_fault::is_exfat or
                                                first_.shape.error().fault == boot_fault::is_ntfs);
    if (not backup_ or is_forced_first or (is_other and options_.boot != boot_source::backup)) {
        check_report report;
        report.refusal = first_.shape.error().message();
        return report;
    }
    if (first_.shape and is_alike(*first_.shape, *backup_->shape)) return check_alike();
    if (first_.shape and options_.boot == boot_source::evidence) return check_different();
    return check_backup_only();
}

result<check_report> boot_choice::examine(const boot_candidate& candidate) {
    return check_as(image_, *candidate.shape, options_);
}

boot_evidence boot_choice::evidence_for(const boot_candidate& candidate, const check_report& report) {
    return gather_evidence(image_, candidate.sector, *candidate.shape, report);
}

// Rule 1.
result<check_report> boot_choice::check_first_only() {
    auto report = examine(first_);
    if (report and backup_) report_difference(*report);
    if (not report or options_.boot == boot_source::first or report->is_consistent()) return report;
    const auto against = contradictions(evidence_for(first_, *report), *report);
    if (against.empty()) return report;
    add_doubt(*report, joined(against) + "; there is no backup to compare it with");
    return report;
}

// Rule 2.
result<check_report> boot_choice::check_alike() {
    take_wrong_fields();
    auto report = examine(first_);
    if (not report) return report;
    restore(*report);
    return report;
}

// Rule 3.
result<check_report> boot_choice::check_different() {
    auto by_first = examine(first_);
    auto by_backup = examine(*backup_);
    // A FAT that reaches past the end of the image cannot be right.
    if (not by_first and not by_backup) return by_first;
    if (not by_first) return check_backup_only();
    if (not by_backup) {
        report_difference(*by_first);
        return by_first;
    }
    const boot_evidence first = evidence_for(first_, *by_first);
    const boot_evidence backup = evidence_for(*backup_, *by_backup);
    switch (compare(first, backup)) {
        case preference::first:
            report_difference(*by_first);
            return by_first;
        case preference::second:
            take_all(differences(backup, first, backup_name, first_name));
            restore(*by_backup);
            return by_backup;
        case preference::neither:
            break;
    }
    std::vector<std::string> found = differences(first, backup, first_name, backup_name);
    std::ranges::move(differences(backup, first, backup_name, first_name), std::back_inserter(found));
    if (found.empty()) found.emplace_back("all evidence fits both");
    add_doubt(*by_first,
              "its backup places things differently, and the evidence does not decide: " + joined(found));
    return by_first;
}

// Rule 4.
result<check_report> boot_choice::check_backup_only() {
    auto report = examine(*backup_);
    if (not report) return report;
    const boot_evidence evidence = evidence_for(*backup_, *report);
    std::vector<std::string> against;
    for (const auto kind : {evidence_kind::fat_start, evidence_kind::root, evidence_kind::tree})
        if (evidence.of(kind).badness >= 2) against.push_back(evidence.of(kind).text);
    if (not against.empty() and options_.boot != boot_source::backup) {
        check_report refused;
        refused.refusal =
            (first_.shape ? "the boot sector contradicts the volume" : first_.shape.error().message()) +
            "; byte " + std::to_string(backup_->offset) +
            " has a backup of it, which the volume contradicts, too: " + joined(against);
        return refused;
    }
    std::vector<std::string> found;
    for (const auto& each : evidence.items)
        if (each.badness == 0) found.push_back("by its backup, " + each.text);
    take_all(found);
    restore(*report);
    return report;
}

void boot_choice::take_field(const char* key, std::string why) {
    ENSURE(restoration_.backup_offset == backup_->offset, "fields are taken from the backup that was chosen");
    const boot_field& field = boot_field_of(key);
    if (is_same(first_.sector, backup_->sector, field)) return;
    restoration_.changes.push_back({.field = &field,
                                    .before = value_of(first_.sector, field),
                                    .after = value_of(backup_->sector, field),
                                    .why = std::move(why)});
    copy_field(restoration_.sector, backup_->sector, field);
}

void boot_choice::begin_restoration() {
    restoration_ = {};
    restoration_.backup_offset = backup_->offset;
    restoration_.sector = first_.sector;
}

void boot_choice::take_marks() {
    if (not is_jump(first_.sector) and is_jump(backup_->sector))
        take_field("jump", "it must be a jump instruction");
    if (first_.sector.signature.value() != boot_signature) take_field("signature", "it must be 55 AA");
    if (not has_extended_signature(first_.sector) and has_extended_signature(backup_->sector))
        take_field("extended_signature", "it must be 28 or 29 hexadecimal");
}

// Fields that do not say where things are, and have an illegal value or one that
// the volume contradicts.
void boot_choice::take_wrong_fields() {
    begin_restoration();
    take_marks();
    const fat32_fields has = fat32_fields_of(first_.sector);
    const fat32_fields other = fat32_fields_of(backup_->sector);
    if (has.version.value() != 0 and other.version.value() == 0) take_field("version", "it must be 0");
    constexpr unsigned reserved_flags = 0xff70;
    if ((has.flags.value() & reserved_flags) != 0 and (other.flags.value() & reserved_flags) == 0)
        take_field("flags", "its reserved bits must be 0");
    if (media_in_fat(image_, *backup_->shape) == backup_->sector.media.value())
        take_field("media", "the FAT repeats that of the backup");
    if (not has_info_at(image_, *first_.shape) and has_info_at(image_, *backup_->shape))
        take_field("info_sector", "FSInfo is where the backup says");
    if (has.backup_sector.value() * first_.shape->sector_bytes != backup_->offset)
        take_field("backup_sector", "the backup is there");
    if (first_.shape->volume_bytes > image_.size_bytes() and
        backup_->shape->volume_bytes <= image_.size_bytes())
        for (const char* key : {"total_sectors_16", "total_sectors_32"})
            take_field(key, "the image has fewer");
}

// All fields that say where things are. The rest only if it cannot be kept.
void boot_choice::take_all(const std::vector<std::string>& evidence) {
    begin_restoration();
    restoration_.evidence = evidence;
    for (const boot_field& each : boot_fields())
        if (each.role == field_role::layout)
            take_field(each.key, first_.shape
                                     ? "the evidence supports the backup"
                                     : "the boot sector is not legal, and the evidence supports the backup");
    const bool is_foreign = not first_.shape and (first_.shape.error().fault <= boot_fault::is_empty);
    const bool is_unmarked = first_.sector.signature.value() != boot_signature and not is_jump(first_.sector);
    if (restoration_.changes.size() > wrong_fields_max or is_foreign or is_unmarked) {
        restoration_.is_whole = true;
        restoration_.sector = backup_->sector;
        return;
    }
    take_marks();
}

void boot_choice::restore(check_report& report) const {
    if (restoration_.changes.empty() and not restoration_.is_whole) return report_difference(report);
    problem bad{.kind = problem_kind::boot_sector_bad};
    bad.cluster = 0;
    if (not first_.shape) bad.other = first_.shape.error().message();
    for (const boot_change& each : restoration_.changes)
        bad.other += (bad.other.empty() ? "" : ", ") + std::string(each.field->name) + " " +
                     std::to_string(each.before) + " instead of " + std::to_string(each.after);
    report.problems.insert(report.problems.begin(), std::move(bad));
    report.boot = restoration_;
}

void boot_choice::report_difference(check_report& report) const {
    std::string names;
    for (const boot_field& each : boot_fields())
        if (not is_same(first_.sector, backup_->sector, each))
            names += (names.empty() ? "" : ", ") + std::string(each.name);
    if (names.empty()) return;
    problem differs{.kind = problem_kind::backup_differs};
    differs.other = std::move(names);
    report.problems.push_back(std::move(differs));
}

}  // namespace sluice::fat

#include "sluice/fat/check/check_report.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/base/json_string.hpp"
#include "sluice/fat/codec/label.hpp"

namespace sluice::fat {
namespace {

std::string text(std::uint64_t number) {
    return std::to_string(number);
}

struct kind_row {
    problem_kind kind;
    const char* name;
    severity weight;
};
constexpr kind_row kinds[] = {
    {problem_kind::boot_sector_bad, "boot_sector_bad", severity::damage},
    {problem_kind::boot_sector_doubtful, "boot_sector_doubtful", severity::damage},
    {problem_kind::backup_differs, "backup_differs", severity::unusual},
    {problem_kind::image_is_short, "image_is_short", severity::damage},
    {problem_kind::fats_differ, "fats_differ", severity::damage},
    {problem_kind::media_differs, "media_differs", severity::damage},
    {problem_kind::dirty, "dirty", severity::damage},
    {problem_kind::medium_errors, "medium_errors", severity::unusual},
    {problem_kind::info_sector_bad, "info_sector_bad", severity::damage},
    {problem_kind::free_count_wrong, "free_count_wrong", severity::damage},
    {problem_kind::root_start_bad, "root_start_bad", severity::damage},
    {problem_kind::bad_start, "bad_start", severity::damage},
    {problem_kind::chain_broken, "chain_broken", severity::damage},
    {problem_kind::chain_loop, "chain_loop", severity::damage},
    {problem_kind::cross_link, "cross_link", severity::damage},
    {problem_kind::chain_too_short, "chain_too_short", severity::damage},
    {problem_kind::chain_too_long, "chain_too_long", severity::damage},
    {problem_kind::directory_unreadable, "directory_unreadable", severity::damage},
    {problem_kind::directory_has_size, "directory_has_size", severity::damage},
    {problem_kind::directory_too_large, "directory_too_large", severity::damage},
    {problem_kind::dot_missing, "dot_missing", severity::damage},
    {problem_kind::dot_wrong, "dot_wrong", severity::damage},
    {problem_kind::dot_malformed, "dot_malformed", severity::damage},
    {problem_kind::dot_misplaced, "dot_misplaced", severity::damage},
    {problem_kind::bad_short_name, "bad_short_name", severity::damage},
    {problem_kind::duplicate_name, "duplicate_name", severity::damage},
    {problem_kind::orphan_long_name, "orphan_long_name", severity::damage},
    {problem_kind::misplaced_label, "misplaced_label", severity::damage},
    {problem_kind::second_label, "second_label", severity::damage},
    {problem_kind::label_differs, "label_differs", severity::unusual},
    {problem_kind::lost_clusters, "lost_clusters", severity::damage},
};

const kind_row& row_of(problem_kind kind) noexcept {
    const auto* const row = std::ranges::find(kinds, kind, &kind_row::kind);
    ENSURE(row != std::end(kinds));
    return *row;
}

std::string message_about_volume(const problem& one) {
    switch (one.kind) {
        case problem_kind::boot_sector_bad:
            return "the boot sector is damaged: " + one.other + "; its backup is consistent with the volume";
        case problem_kind::boot_sector_doubtful:
            return "the boot sector contradicts the volume: " + one.other;
        case problem_kind::backup_differs:
            return "the backup of the boot sector differs from it in " + one.other;
        case problem_kind::image_is_short:
            return "the volume has " + text(one.value) + " bytes, the image only " + text(one.expected) +
                   ": the data past its end cannot be read";
        case problem_kind::fats_differ:
            return "FAT copy " + text(one.value) +
                   " differs from the copy in use; the first difference is at cluster " + text(one.cluster);
        case problem_kind::media_differs:
            return "the FAT begins with " + text(one.value) +
                   ", must repeat the media byte: " + text(one.expected);
        case problem_kind::dirty:
            return "the volume is marked dirty: it was not unmounted, or is being written";
        case problem_kind::medium_errors:
            return "the volume is marked: a driver has found errors of the device";
        case problem_kind::info_sector_bad:
            return "the FSInfo sector does not have the signatures of FSInfo";
        case problem_kind::free_count_wrong:
            return "FSInfo says that " + text(one.value) + " clusters are free, but " + text(one.expected) +
                   " are";
        case problem_kind::root_start_bad:
            return "the root directory begins at " + text(one.value) + ", which is not a cluster in use";
        case problem_kind::label_differs:
            return "the label in the root directory differs from that of the boot sector, \"" + one.other +
                   "\"";
        default:
            ENSURE(one.kind == problem_kind::lost_clusters, "any other problem has a path");
            return text(one.value) + " clusters in " + text(one.expected) +
                   " chains are in use and belong to no file";
    }
}

std::string message_about_chain(const problem& one) {
    const std::string at = one.cluster == 0 ? "its first cluster" : "after cluster " + text(one.cluster);
    switch (one.kind) {
        case problem_kind::bad_start:
            return "begins at " + text(one.value) + ", which is not a cluster in use";
        case problem_kind::chain_broken:
            return "its chain leads, " + at + ", to " + text(one.value) +
                   ", which is free, bad or not a cluster";
        case problem_kind::chain_loop:
            return "its chain leads, " + at + ", back to its own cluster " + text(one.value);
        case problem_kind::cross_link:
            return "shares, " + at + ", cluster " + text(one.value) + " with " + one.other;
        case problem_kind::chain_too_short:
            return "has " + text(one.value) + " clusters, its size needs " + text(one.expected);
        default:
            ENSURE(one.kind == problem_kind::chain_too_long, "every problem has a sentence");
            return "has " + text(one.value) + " clusters, its size needs only " + text(one.expected);
    }
}

std::string message_about_entry(const problem& one) {
    switch (one.kind) {
        case problem_kind::directory_unreadable:
            return "is a directory that cannot be read, so lost clusters are not saved";
        case problem_kind::directory_has_size:
            return "is a directory with a size, " + text(one.value) + " bytes, must be 0";
        case problem_kind::directory_too_large:
            return "is a directory of more than 65536 slots";
        case problem_kind::dot_missing:
            return "has no entry " + one.other + " at its beginning";
        case problem_kind::dot_wrong:
            return "its entry " + one.other + " leads to cluster " + text(one.value) + ", must be " +
                   text(one.expected);
        case problem_kind::dot_malformed:
            return "its entry " + one.other + " has attributes " + text(one.value) +
                   " and must be a directory without a size";
        case problem_kind::dot_misplaced:
            return "is an entry . or .. in a wrong slot";
        case problem_kind::bad_short_name:
            return "has a short name with illegal characters";
        case problem_kind::duplicate_name:
            return "has the name of another entry of its directory";
        case problem_kind::orphan_long_name:
            return text(one.value) + " slots of a long name belong to no entry";
        case problem_kind::misplaced_label:
            return "is a volume label outside of the root directory";
        case problem_kind::second_label:
            return "is a second volume label";
        default:
            return message_about_chain(one);
    }
}

void add_field(std::string& json, const char* name, std::uint64_t value) {
    json += ",\"" + std::string(name) + "\":" + text(value);
}

void add_field(std::string& json, const char* name, const std::string& value) {
    json += ",\"" + std::string(name) + "\":";
    append_json_string(json, value);
}

void add_json(std::string& json, const problem& one) {
    json += "{\"kind\":\"" + std::string(name_of(one.kind)) + '"';
    add_field(json, "severity", one.weight() == severity::damage ? std::string("damage") : "unusual");
    if (not one.path.empty()) add_field(json, "path", one.path);
    if (not one.other.empty()) add_field(json, "other", one.other);
    add_field(json, "cluster", one.cluster);
    add_field(json, "value", one.value);
    add_field(json, "expected", one.expected);
    add_field(json, "message", one.message());
    json += '}';
}

void add_boot_json(std::string& json, const check_report& report) {
    if (not report.boot) return;
    json += ",\"boot_sector_changes\":[";
    for (const boot_change& each : report.boot->changes) {
        if (&each != report.boot->changes.data()) json += ',';
        json += "{\"field\":\"" + std::string(each.field->key) + '"';
        add_field(json, "old", each.before);
        add_field(json, "new", each.after);
        add_field(json, "why", each.why);
        json += '}';
    }
    json += "],\"boot_sector_evidence\":[";
    for (const std::string& each : report.boot->evidence) {
        if (&each != report.boot->evidence.data()) json += ',';
        append_json_string(json, each);
    }
    json += ']';
}

const char* name_of_type(fat_type type) noexcept {
    return type == fat_type::fat12 ? "FAT12" : type == fat_type::fat16 ? "FAT16" : "FAT32";
}

}  // namespace

severity problem::weight() const noexcept {
    return row_of(kind).weight;
}

const char* name_of(problem_kind kind) noexcept {
    return row_of(kind).name;
}

std::string problem::message() const {
    if (path.empty()) return message_about_volume(*this);
    return path + ": " + message_about_entry(*this);
}

bool check_report::is_consistent() const noexcept {
    return shape.has_value() and problems_left_out == 0 and
           std::ranges::none_of(problems,
                                [](const problem& one) { return one.weight() == severity::damage; });
}

bool check_report::has(problem_kind kind) const noexcept {
    return std::ranges::find(problems, kind, &problem::kind) != problems.end();
}

std::string boot_text_of(const check_report& report) {
    if (not report.boot) return {};
    const boot_restoration& boot = *report.boot;
    std::string lines =
        "boot sector: the backup at byte " + text(boot.backup_offset) + " is consistent with the volume\n";
    for (const boot_change& each : boot.changes)
        lines += "boot sector: " + std::string(each.field->name) + ": " + text(each.before) + " becomes " +
                 text(each.after) + ": " + each.why + "\n";
    if (boot.is_whole) lines += "boot sector: everything else is taken from the backup as well\n";
    for (const std::string& each : boot.evidence)
        lines += "evidence: " + each + "\n";
    return lines;
}

std::string text_of(const check_report& report) {
    if (not report.shape) return report.refusal + "\n";
    std::string lines = boot_text_of(report);
    for (const problem& one : report.problems)
        lines += (one.weight() == severity::damage ? "damage: " : "unusual: ") + one.message() + "\n";
    if (report.problems_left_out != 0) lines += "and " + text(report.problems_left_out) + " problems more\n";
    const geometry& shape = *report.shape;
    lines += std::string(name_of_type(shape.type)) + ", " + text(shape.cluster_count) + " clusters of " +
             text(shape.cluster_bytes) + " bytes: " + text(report.used_clusters) + " used, " +
             text(report.free_clusters) + " free, " + text(report.bad_clusters) + " bad; " +
             text(report.files) + " files, " + text(report.directories) + " directories\n";
    return lines + (report.is_consistent() ? "The volume is consistent.\n" : "The volume is damaged.\n");
}

std::string json_of_failure(const error& why) {
    std::string json = "{\"consistent\":false,\"verdict\":\"unreadable\"";
    add_field(json, "refusal", why.message());
    return json + "}\n";
}

std::string json_of(const check_report& report) {
    std::string json = report.is_consistent() ? "{\"consistent\":true" : "{\"consistent\":false";
    const bool is_doubtful = report.has(problem_kind::boot_sector_doubtful);
    add_field(json, "verdict",
              std::string(not report.shape         ? "rejected"
                          : is_doubtful            ? "doubtful"
                          : report.is_consistent() ? "consistent"
                                                   : "damaged"));
    if (not report.shape) {
        add_field(json, "refusal", report.refusal);
        return json + "}\n";
    }
    const geometry& shape = *report.shape;
    add_field(json, "type", std::string(name_of_type(shape.type)));
    add_field(json, "label", label_text(shape.label));
    add_field(json, "cluster_bytes", shape.cluster_bytes);
    add_field(json, "clusters", shape.cluster_count);
    add_field(json, "used_clusters", report.used_clusters);
    add_field(json, "free_clusters", report.free_clusters);
    add_field(json, "bad_clusters", report.bad_clusters);
    add_field(json, "files", report.files);
    add_field(json, "directories", report.directories);
    add_field(json, "problems_left_out", report.problems_left_out);
    add_boot_json(json, report);
    json += ",\"problems\":[";
    for (const problem& one : report.problems) {
        if (&one != report.problems.data()) json += ',';
        add_json(json, one);
    }
    return json + "]}\n";
}

}  // namespace sluice::fat

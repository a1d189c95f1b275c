#include "sluice/fat/check/boot_evidence.hpp"

#include <algorithm>
#include <unordered_set>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/directory_entry.hpp"
#include "sluice/fat/codec/long_name.hpp"
#include "sluice/fat/edit/chain_map.hpp"

namespace sluice::fat {
namespace {

constexpr std::size_t root_bytes_max = 64 << 10;

std::string text(std::uint64_t number) {
    return std::to_string(number);
}

// Gathers one kind of evidence after the other.
class gatherer {
public:
    gatherer(device& image, const boot_sector& sector, const geometry& shape, const check_report& found)
        : image_(image), sector_(sector), shape_(shape), found_(found) {}

    boot_evidence gather() {
        weigh_fat_start();
        weigh_root();
        weigh_tree();
        weigh_copies();
        weigh_length();
        weigh_tail();
        weigh_image();
        weigh_info();
        weigh_rules();
        ENSURE(std::ranges::none_of(evidence_.items, [](const auto& each) { return each.text.empty(); }),
               "each kind of evidence is weighed");
        return std::move(evidence_);
    }

private:
    void set(evidence_kind kind, unsigned badness, std::string what) {
        evidence_.items[static_cast<std::size_t>(kind)] = {.badness = badness, .text = std::move(what)};
    }

    std::optional<std::uint32_t> entry_of(std::uint32_t copy, std::uint32_t index) {
        const byte_extent where = entry_extent(shape_.type, index);
        std::array<std::byte, 4> room{};
        const auto bytes = std::span(room).first(where.length);
        if (not image_.read_at(shape_.fat_copy_offset(copy) + where.offset, bytes)) return std::nullopt;
        return read_entry(shape_.type, bytes_view(bytes), index, where.offset);
    }

    bool begins_as_fat(std::uint32_t copy) {
        const auto media = entry_of(copy, 0);
        const auto end = entry_of(copy, 1);
        if (not media or not end) return false;
        const std::uint32_t byte = *media & 0xff;
        const std::uint32_t flags = clean_bit(shape_.type) | no_error_bit(shape_.type);
        const std::uint32_t end_min = entry_mask(shape_.type) - 7;
        return (byte == 0xf0 or byte >= 0xf8) and (*end | flags) >= end_min;
    }

    void weigh_fat_start() {
        std::uint32_t right = 0;
        for (std::uint32_t copy = 0; copy != shape_.fat_count; ++copy)
            right += begins_as_fat(copy);
        set(evidence_kind::fat_start,
            right == shape_.fat_count ? 0
            : right == 0              ? 2
                                      : 1,
            text(right) + " of " + text(shape_.fat_count) + " FATs begin as a FAT does");
    }

    bool is_plausible(const directory_entry& entry, slot_kind kind) const noexcept {
        constexpr std::uint8_t order_bits = 0x1f;
        if (kind == slot_kind::long_name)
            return (entry.name[0] & order_bits) != 0 and
                   (entry.name[0] & order_bits) <= long_name_slots_max and entry.case_bits.value() == 0 and
                   entry.first_cluster_low.value() == 0;
        if ((entry.attribute_bits.value() & 0xc0) != 0 or kind == slot_kind::dots) return false;
        const bool is_text = std::ranges::all_of(entry.name, [&](const unsigned char& c) {
            return c >= ' ' or (c == e5_substitute and &c == entry.name.data());
        });
        const std::uint32_t first = first_cluster(
            entry, shape_.type == fat_type::fat32 ? cluster_width::four_bytes : cluster_width::two_bytes);
        return is_text and (first == 0 or kind == slot_kind::label or shape_.is_cluster(first));
    }

    bool is_referenced(std::uint32_t cluster) {
        const auto map = chain_map::load(image_, shape_, shape_.active_fat);
        if (not map) return false;
        for (std::uint32_t each = geometry::first_cluster; each <= shape_.last_cluster(); ++each)
            if (map->value(each) == cluster) return true;
        return false;
    }

    // The slots that were read, up to the end of the directory.
    struct slots_seen {
        std::uint64_t plausible = 0;
        std::uint64_t other = 0;
        bool has_end = false;
        bool begins_with_dots = false;
        bool is_read = false;
    };
    slots_seen read_slots(byte_extent where) {
        slots_seen seen;
        std::vector<std::byte> room(std::min<std::uint64_t>(where.length, root_bytes_max));
        seen.is_read = not room.empty() and image_.read_at(where.offset, std::span(room)).has_value();
        for (std::size_t at = 0; seen.is_read and at != room.size() and not seen.has_end; at += slot_bytes) {
            const auto entry = *bytes_view(room).take_at<directory_entry>(at);
            const slot_kind kind = kind_of(entry);
            seen.has_end = kind == slot_kind::end;
            if (at == 0) seen.begins_with_dots = kind == slot_kind::dots;
            if (kind == slot_kind::end or kind == slot_kind::free) continue;
            ++(is_plausible(entry, kind) ? seen.plausible : seen.other);
        }
        return seen;
    }

    void weigh_root() {
        byte_extent where{.offset = shape_.root_offset,
                          .length = std::uint64_t{shape_.root_entries} * slot_bytes};
        if (shape_.type == fat_type::fat32) {
            const auto value = shape_.is_cluster(shape_.root_cluster)
                                   ? entry_of(shape_.active_fat, shape_.root_cluster)
                                   : std::nullopt;
            const auto kind = value ? shape_.classify(*value).kind : entry_kind::free;
            if (kind == entry_kind::free or kind == entry_kind::bad)
                return set(evidence_kind::root, 2, "the root directory does not begin at a cluster in use");
            if (is_referenced(shape_.root_cluster))
                return set(evidence_kind::root, 2, "the root directory begins in the middle of a chain");
            where = {.offset = shape_.cluster_offset(shape_.root_cluster), .length = shape_.cluster_bytes};
        }
        const slots_seen seen = read_slots(where);
        if (not seen.is_read) return set(evidence_kind::root, 2, "the root directory cannot be read");
        if (seen.begins_with_dots or seen.other * 4 > seen.plausible)
            return set(evidence_kind::root, 2, "the root directory does not look like one");
        if (seen.plausible == 0) return set(evidence_kind::root, 1, "the root directory is empty");
        if (shape_.type != fat_type::fat32 and not seen.has_end) {
            const slots_seen after =
                read_slots({.offset = where.offset + where.length, .length = shape_.sector_bytes});
            if (after.plausible != 0 and after.other == 0 and not after.begins_with_dots)
                return set(evidence_kind::root, 3, "the root directory continues after its end");
        }
        set(evidence_kind::root, 0, "the root directory looks like one");
    }

    void weigh_tree() {
        std::unordered_set<std::string> paths;
        for (const problem& one : found_.problems) {
            if (not one.path.empty() and one.weight() == severity::damage) paths.insert(one.path);
            if (one.kind == problem_kind::lost_clusters)
                evidence_.lost = static_cast<std::int64_t>(one.expected);
        }
        const auto objects = static_cast<std::int64_t>(found_.files + found_.directories);
        evidence_.damaged = static_cast<std::int64_t>(paths.size() + found_.problems_left_out);
        evidence_.consistent = std::max<std::int64_t>(objects - evidence_.damaged, 0);
        set(evidence_kind::tree,
            evidence_.damaged > evidence_.consistent        ? 2
            : evidence_.damaged != 0 or evidence_.lost != 0 ? 1
                                                            : 0,
            text(static_cast<std::uint64_t>(evidence_.consistent)) +
                " files and directories are consistent, " +
                text(static_cast<std::uint64_t>(evidence_.damaged)) + " are damaged, and " +
                text(static_cast<std::uint64_t>(evidence_.lost)) + " chains belong to no file");
    }

    // Compares pieces of the first 64 MiB, one in each MiB and all of the first.
    void weigh_copies() {
        if (shape_.fat_count == 1 or not shape_.is_mirrored)
            return set(evidence_kind::copies, 0, "one FAT is in use");
        constexpr std::uint64_t piece_bytes = 4096;
        std::uint64_t compared = 0;
        std::uint64_t differing = 0;
        std::array<std::byte, piece_bytes> a{};
        std::array<std::byte, piece_bytes> b{};
        const std::uint64_t end = std::min<std::uint64_t>(shape_.fat_used_bytes(), 64 << 20);
        for (std::uint64_t at = 0; at < end; at += at < (1 << 20) ? piece_bytes : 1 << 20) {
            const auto length = std::min<std::uint64_t>(piece_bytes, end - at);
            a.fill({});
            b.fill({});
            const bool is_read =
                image_.read_at(shape_.fat_copy_offset(0) + at, std::span(a).first(length)) and
                image_.read_at(shape_.fat_copy_offset(1) + at, std::span(b).first(length));
            const bool is_zero =
                std::ranges::all_of(a, [](std::byte each) { return each == std::byte{}; }) and
                std::ranges::all_of(b, [](std::byte each) { return each == std::byte{}; });
            if (is_read and is_zero) continue;
            ++compared;
            differing += not is_read or a != b;
        }
        set(evidence_kind::copies,
            differing == 0             ? 0
            : differing * 2 > compared ? 2
                                       : 1,
            differing == 0
                ? "the copies of the FAT are alike"
                : "the copies of the FAT differ in " + text(differing) + " of " + text(compared) + " pieces");
    }

    void weigh_length() {
        const std::uint64_t has = shape_.fat_bytes / shape_.sector_bytes;
        const std::uint64_t needs = (shape_.fat_used_bytes() + shape_.sector_bytes - 1) / shape_.sector_bytes;
        if (fat::has(shape_.odd, format_anomaly::table_is_short))
            return set(evidence_kind::length, 2,
                       "the FAT has " + text(has) + " sectors, fewer than the clusters need");
        const bool is_long = has > needs + needs / 8 + 8;
        set(evidence_kind::length, is_long ? 1 : 0,
            "the FAT has " + text(has) + " sectors, and the clusters need " + text(needs));
    }

    // Looks at the 64 KiB after the entry of the last cluster. Bad clusters do not count: some
    // programs mark the rest of the FAT so.
    void weigh_tail() {
        constexpr std::uint64_t bytes_max = 64 << 10;
        const std::uint64_t entries =
            std::min<std::uint64_t>(entries_in(shape_.type, shape_.fat_bytes), bad_entry(shape_.type));
        const std::uint32_t first = shape_.last_cluster() + 1;
        std::uint64_t used = 0;
        if (first < entries) {
            const std::uint64_t start = entry_extent(shape_.type, first).offset;
            std::vector<std::byte> room(std::min(bytes_max, shape_.fat_bytes - start));
            if (image_.read_at(shape_.fat_copy_offset(shape_.active_fat) + start, std::span(room)))
                for (std::uint32_t each = first; each < entries; ++each) {
                    const auto value = read_entry(shape_.type, room, each, start);
                    if (not value) break;
                    used += *value != free_entry and * value != bad_entry(shape_.type);
                }
        }
        set(evidence_kind::tail, used == 0 ? 0 : 1,
            text(used) + " entries of the FAT after the last cluster are in use");
    }

    void weigh_image() {
        const std::uint64_t device = image_.size_bytes();
        const std::uint64_t slack = std::uint64_t{64 << 10} + shape_.cluster_bytes;
        set(evidence_kind::image,
            shape_.volume_bytes > device           ? 2
            : device - shape_.volume_bytes > slack ? 1
                                                   : 0,
            "the volume has " + text(shape_.volume_bytes) + " bytes, and its place " + text(device));
    }

    void weigh_info() {
        if (shape_.type != fat_type::fat32) return set(evidence_kind::info, 0, "there is no FSInfo");
        std::array<std::byte, sizeof(info_sector)> bytes{};
        std::optional<volume_info> info;
        if (shape_.info_offset and image_.read_at(*shape_.info_offset, std::span<std::byte>(bytes)))
            info = decode_info(*bytes_view(bytes).take<info_sector>(), shape_);
        if (not info) return set(evidence_kind::info, 2, "FSInfo is not where it should be");
        const bool is_right = info->free_count == found_.free_clusters;
        set(evidence_kind::info, is_right ? 0 : 1,
            is_right ? "FSInfo has the number of free clusters"
                     : "FSInfo has another number of free clusters");
    }

    void weigh_rules() {
        unsigned broken = 0;
        if (shape_.type == fat_type::fat32) {
            const fat32_fields fields = fat32_fields_of(sector_);
            constexpr unsigned reserved_flags = 0xff70;
            broken += sector_.root_entries.value() != 0;
            broken += sector_.total_sectors_16.value() != 0;
            broken += (fields.flags.value() & reserved_flags) != 0;
            broken += fields.version.value() != 0;
        } else {
            broken += sector_.root_entries.value() == 0;
        }
        broken += not is_named_by_type();
        set(evidence_kind::rules, broken, text(broken) + " fields break a rule of the format");
    }

    // The name of the type has no meaning to readers, but a formatter that
    // writes it knows the type.
    bool is_named_by_type() const noexcept {
        const extended_fields fields = extended_fields_of(sector_, shape_.type);
        const std::string_view name(fields.type_name.data(), 5);
        const bool is_name = name == "FAT12" or name == "FAT16" or name == "FAT32";
        if (fields.signature.value() != 0x29 or not is_name) return true;
        return name == (shape_.type == fat_type::fat12   ? "FAT12"
                        : shape_.type == fat_type::fat16 ? "FAT16"
                                                         : "FAT32");
    }

    device& image_;
    const boot_sector& sector_;
    const geometry& shape_;
    const check_report& found_;
    boot_evidence evidence_;
};

// Whether X has more files that fit together, and nothing speaks against it; or so many more that
// it does not matter what does.
bool has_better_tree(const boot_evidence& x, const boot_evidence& y) noexcept {
    const bool is_no_worse = x.consistent >= y.consistent and x.damaged <= y.damaged and x.lost <= y.lost;
    const bool differs = x.consistent != y.consistent or x.damaged != y.damaged or x.lost != y.lost;
    if (is_no_worse and differs) return true;
    const auto score = [](const boot_evidence& of) { return of.consistent - of.damaged - of.lost; };
    return score(x) >= 2 * std::max<std::int64_t>(score(y), 0) + 2;
}

bool is_better(const boot_evidence& x, const boot_evidence& y, evidence_kind kind) noexcept {
    if (kind == evidence_kind::tree) return has_better_tree(x, y);
    return x.of(kind).badness < y.of(kind).badness;
}

template <class Visit>
void for_each_kind(const Visit& visit) {
    for (std::size_t i = 0; i != evidence_kinds; ++i)
        visit(static_cast<evidence_kind>(i));
}

// Files whose chains are as long as they would be if clusters were `factor`
// times smaller, or larger.
std::uint64_t fits_other_cluster(const problem& one, std::uint64_t factor, bool is_smaller) noexcept {
    ENSURE(factor > 1, "another size of cluster");
    const std::uint64_t has = one.value;
    const std::uint64_t needs = one.expected;
    if (needs == 0 or has == 0) return 0;
    if (is_smaller) return has > (needs - 1) * factor and has <= needs * factor;
    return has == (needs + factor - 1) / factor;
}

bool suggests_other_cluster(const check_report& found) noexcept {
    for (const bool is_smaller : {true, false})
        for (std::uint64_t factor = 2; factor <= 128; factor *= 2) {
            std::uint64_t wrong = 0;
            std::uint64_t fitting = 0;
            for (const problem& one : found.problems) {
                if (one.kind != problem_kind::chain_too_long and one.kind != problem_kind::chain_too_short)
                    continue;
                ++wrong;
                fitting += fits_other_cluster(one, factor, is_smaller);
            }
            if (fitting >= 3 and fitting * 4 >= wrong * 3) return true;
        }
    return false;
}

std::uint64_t directories_without_dots(const check_report& found) {
    std::unordered_set<std::string> paths;
    for (const problem& one : found.problems)
        if (one.kind == problem_kind::dot_missing) paths.insert(one.path);
    return paths.size();
}

bool leads_into_tail(const check_report& found) noexcept {
    return std::ranges::any_of(found.problems, [&](const problem& one) {
        const bool is_chain = one.kind == problem_kind::bad_start or one.kind == problem_kind::chain_broken;
        return is_chain and one.value > found.shape->last_cluster() and
               one.value < entries_in(found.shape->type, found.shape->fat_bytes);
    });
}

}  // namespace

boot_evidence gather_evidence(device& image, const boot_sector& sector, const geometry& shape,
                              const check_report& found) {
    return gatherer(image, sector, shape, found).gather();
}

preference compare(const boot_evidence& first, const boot_evidence& second) noexcept {
    std::array<unsigned, 2> strong{};
    std::array<unsigned, 2> weak{};
    for_each_kind([&](evidence_kind kind) {
        auto& counts = is_strong(kind) ? strong : weak;
        counts[0] += is_better(first, second, kind);
        counts[1] += is_better(second, first, kind);
    });
    const auto& deciding = strong[0] + strong[1] != 0 ? strong : weak;
    if (deciding[0] != 0 and deciding[1] == 0) return preference::first;
    if (deciding[1] != 0 and deciding[0] == 0) return preference::second;
    return preference::neither;
}

std::vector<std::string> differences(const boot_evidence& better, const boot_evidence& worse,
                                     const char* better_name, const char* worse_name) {
    std::vector<std::string> found;
    for_each_kind([&](evidence_kind kind) {
        if (not is_better(better, worse, kind)) return;
        found.push_back("by " + std::string(better_name) + ", " + better.of(kind).text + "; by " +
                        worse_name + ", " + worse.of(kind).text);
    });
    return found;
}

std::vector<std::string> contradictions(const boot_evidence& evidence, const check_report& found) {
    constexpr unsigned enough = 2;
    unsigned weight = 0;
    std::vector<std::string> texts;
    const auto count = [&](unsigned points, const std::string& what) {
        if (points == 0) return;
        weight += points;
        texts.push_back(what);
    };
    const auto text_of_kind = [&](evidence_kind kind) { return evidence.of(kind).text; };
    const bool is_damaged = evidence.lost != 0 or evidence.damaged != 0;
    const unsigned fat_start = evidence.of(evidence_kind::fat_start).badness;
    count(fat_start != 0, text_of_kind(evidence_kind::fat_start));
    count(fat_start == 1 and evidence.of(evidence_kind::copies).badness == 2 and is_damaged,
          text_of_kind(evidence_kind::copies));
    const unsigned root = evidence.of(evidence_kind::root).badness;
    const bool is_emptied = root == 1 and evidence.lost != 0 and found.files + found.directories == 0;
    count(root == 3 ? 2 : root == 2 or is_emptied ? 1 : 0, text_of_kind(evidence_kind::root));
    const bool is_ruined = evidence.damaged >= 4 and evidence.damaged >= 3 * evidence.consistent;
    count(is_ruined ? 2 : evidence.damaged > evidence.consistent, text_of_kind(evidence_kind::tree));
    const bool is_mostly_lost = evidence.lost >= 4 and evidence.lost > evidence.consistent + evidence.damaged;
    count(is_mostly_lost, text_of_kind(evidence_kind::tree));
    count(evidence.of(evidence_kind::length).badness != 0, text_of_kind(evidence_kind::length));
    // The image of a larger volume, cut, still has the FAT of that.
    const bool is_too_large =
        evidence.of(evidence_kind::length).badness == 2 and evidence.of(evidence_kind::image).badness == 2;
    count(is_too_large, text_of_kind(evidence_kind::image));
    const unsigned tail = evidence.of(evidence_kind::tail).badness;
    count(tail == 0 ? 0 : leads_into_tail(found) ? 2 : 1, text_of_kind(evidence_kind::tail));
    count(evidence.of(evidence_kind::rules).badness != 0, text_of_kind(evidence_kind::rules));
    count(suggests_other_cluster(found) ? 2 : 0,
          "the chains of files have the lengths that they would have with another cluster size");
    const std::uint64_t without_dots = directories_without_dots(found);
    const bool is_majority = without_dots * 2 > found.directories;
    count(not is_majority or without_dots == 0 ? 0
          : without_dots == 1                  ? 1
                                               : 2,
          text(without_dots) + " of " + text(found.directories) + " directories do not begin with . and ..");
    if (weight < enough) texts.clear();
    return texts;
}

}  // namespace sluice::fat

#include "sluice/fat/check/repair_stages.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/check/boot_choice.hpp"
#include "sluice/fat/check/geometry_check.hpp"

namespace sluice::fat {

repair_stage stage_of(problem_kind kind) noexcept {
    switch (kind) {
        case problem_kind::boot_sector_bad:
            return repair_stage::boot;
        case problem_kind::fats_differ:
            return repair_stage::tables;
        case problem_kind::root_start_bad:
            return repair_stage::root;
        case problem_kind::bad_start:
        case problem_kind::chain_broken:
        case problem_kind::chain_loop:
        case problem_kind::cross_link:
            return repair_stage::chains;
        case problem_kind::chain_too_short:
        case problem_kind::chain_too_long:
        case problem_kind::directory_has_size:
            return repair_stage::lengths;
        case problem_kind::dot_missing:
        case problem_kind::dot_wrong:
        case problem_kind::dot_malformed:
        case problem_kind::dot_misplaced:
        case problem_kind::bad_short_name:
        case problem_kind::duplicate_name:
        case problem_kind::orphan_long_name:
        case problem_kind::misplaced_label:
        case problem_kind::second_label:
            return repair_stage::entries;
        case problem_kind::lost_clusters:
            return repair_stage::lost;
        case problem_kind::media_differs:
        case problem_kind::info_sector_bad:
        case problem_kind::free_count_wrong:
            return repair_stage::marks;
        case problem_kind::boot_sector_doubtful:  // nothing else is done then
        case problem_kind::backup_differs:
        case problem_kind::image_is_short:
        case problem_kind::dirty:  // cleared by repair itself, last
        case problem_kind::medium_errors:
        case problem_kind::directory_too_large:
        case problem_kind::directory_unreadable:
        case problem_kind::label_differs:
            break;
    }
    return repair_stage::never;
}

result<unsigned> repair_round::run(repair_stage stage, std::set<std::uint64_t>& renamed) {
    ENSURE(stage != repair_stage::never, "the stage has remedies");
    unsigned applied = 0;
    for (const problem& one : found_.problems) {
        if (stage_of(one.kind) != stage) continue;
        if ((stage == repair_stage::lost or stage == repair_stage::marks) and not has_seen_everything())
            continue;
        const auto done = repair(one, renamed);
        if (not done) return failure(done.error());
        applied += *done;
        if (stage == repair_stage::tables and applied != 0) break;  // one remedy for all copies
    }
    if (table_) {
        if (const auto done = table_->flush(); not done) return failure(done.error());
    }
    return applied;
}

// Lost clusters may belong to a file in a directory, or in a part of the image, that was
// not read. In this case they are not saved under another name, and the counts of the
// volume stay as they are.
bool repair_round::has_seen_everything() const noexcept {
    return not found_.has(problem_kind::image_is_short) and
           not found_.has(problem_kind::directory_unreadable) and
           not found_.has(problem_kind::directory_too_large) and found_.problems_left_out == 0;
}

result<bool> repair_round::repair(const problem& one, std::set<std::uint64_t>& renamed) {
    if (one.kind == problem_kind::boot_sector_bad) return repair_boot_sector();
    if (one.kind == problem_kind::fats_differ) return repair_tables();
    if (const auto loaded = load_table(); not loaded) return failure(loaded.error());
    switch (stage_of(one.kind)) {
        case repair_stage::root:
        case repair_stage::chains:
            return one.kind == problem_kind::cross_link ? repair_cross_link(one) : repair_chain(one);
        case repair_stage::lengths:
            return repair_length(one);
        case repair_stage::entries:
            if (one.kind == problem_kind::dot_missing or one.kind == problem_kind::dot_wrong or
                one.kind == problem_kind::dot_malformed)
                return repair_dot_entries(one);
            if (one.kind == problem_kind::orphan_long_name) return drop_pieces(one);
            if (one.kind == problem_kind::bad_short_name or one.kind == problem_kind::duplicate_name)
                return repair_name(one, renamed);
            say(one, "removed the entry");
            return free_slot(one);
        case repair_stage::lost:
            return save_lost();
        default:
            ENSURE(stage_of(one.kind) == repair_stage::marks, "the stage has remedies");
            return repair_dirty_marks(one);
    }
}

result<bool> repair_round::repair_boot_sector() {
    if (not found_.boot) return false;
    const boot_restoration& boot = *found_.boot;
    if (const auto done = image_.write_at(0, bytes_of(boot.sector).span()); not done)
        return failure(done.error());
    for (const boot_change& each : boot.changes)
        actions_.push_back("the boot sector: set " + std::string(each.field->name) + " to " +
                           std::to_string(each.after) + " (was " + std::to_string(each.before) +
                           "): " + each.why);
    if (boot.is_whole) actions_.emplace_back("copied the rest of the backup of the boot sector over it");
    return true;
}

// Uses the copy with the fewest problems; the active one if no other is better.
result<bool> repair_round::repair_tables() {
    ENSURE(shape_.fat_count > 1, "only several copies can differ");
    std::uint32_t best = shape_.active_fat;
    std::uint64_t fewest = ~std::uint64_t{0};
    for (std::uint32_t i = 0; i != shape_.fat_count; ++i) {
        const std::uint32_t copy = (shape_.active_fat + i) % shape_.fat_count;
        const auto report = check_as(image_, shape_, {.page = options_.page, .table_copy = copy});
        if (not report) return failure(report.error());
        const std::uint64_t problems = report->problems.size() + report->problems_left_out;
        if (problems >= fewest) continue;
        best = copy;
        fewest = problems;
    }
    std::array<std::byte, 64 * 1024> room;
    for (std::uint64_t at = 0; at < shape_.fat_used_bytes(); at += room.size()) {
        const auto piece =
            std::span(room).first(std::min<std::uint64_t>(room.size(), shape_.fat_used_bytes() - at));
        if (const auto done = image_.read_at(shape_.fat_copy_offset(best) + at, piece); not done)
            return failure(done.error());
        for (std::uint32_t copy = 0; copy != shape_.fat_count; ++copy) {
            if (copy == best) continue;
            const auto done =
                image_.write_at(shape_.fat_copy_offset(copy) + at, std::span<const std::byte>(piece));
            if (not done) return failure(done.error());
        }
    }
    actions_.push_back("copied FAT " + std::to_string(best) + " over the other");
    return true;
}

result<void> repair_round::load_table() {
    if (table_) return {};
    auto table = table_editor::load(image_, shape_);
    if (not table) return failure(table.error());
    table_.emplace(*std::move(table));
    if (found_.has(problem_kind::cross_link)) as_found_.emplace(*table_);
    return {};
}

void repair_round::say(const problem& one, const std::string& what) {
    actions_.push_back((one.path.empty() ? std::string("the volume") : one.path) + ": " + what);
}

// Returns the media byte that several FATs agree on, if the boot sector has no backup; otherwise
// std::nullopt.
std::optional<std::uint8_t> repair_round::media_of_fats() noexcept {
    boot_sector first{};
    std::array<std::byte, sizeof first> bytes{};
    if (shape_.fat_count < 2 or not image_.read_at(0, std::span<std::byte>(bytes))) return std::nullopt;
    std::memcpy(&first, bytes.data(), sizeof first);
    if (find_backup(image_, first)) return std::nullopt;
    std::optional<std::uint8_t> media;
    for (std::uint32_t copy = 0; copy != shape_.fat_count; ++copy) {
        std::array<std::byte, 1> byte{};
        if (not image_.read_at(shape_.fat_copy_offset(copy), std::span<std::byte>(byte))) return std::nullopt;
        const auto found = static_cast<std::uint8_t>(byte[0]);
        if ((media and *media != found) or (found < 0xf8 and found != 0xf0)) return std::nullopt;
        media = found;
    }
    return media;
}

// Returns whether the sector may be FSInfo. A sector that is neither empty nor similar to FSInfo
// has another purpose, and then its number in the boot sector is wrong.
bool repair_round::may_be_info() noexcept {
    std::array<std::byte, sizeof(info_sector)> bytes{};
    if (not shape_.info_offset or shape_.info_offset == shape_.backup_offset or
        not image_.read_at(*shape_.info_offset, std::span<std::byte>(bytes)))
        return false;
    const auto sector = *bytes_view(bytes).take<info_sector>();
    const info_sector right = encode_info({});
    return sector.lead_signature == right.lead_signature or sector.signature == right.signature or
           std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; });
}

result<bool> repair_round::repair_dirty_marks(const problem& one) {
    if (one.kind == problem_kind::media_differs) {
        if (const auto media = media_of_fats()) {
            const std::array<std::byte, 1> byte{static_cast<std::byte>(*media)};
            say(one, "set the media byte to " + std::to_string(*media) + ", which every FAT has");
            const auto done = image_.write_at(offsetof(boot_sector, media), std::span<const std::byte>(byte));
            return done ? result<bool>(true) : failure(done.error());
        }
        ENSURE((one.expected & 0xff) == shape_.media, "FAT[0] repeats the media byte");
        table_->set(0, static_cast<std::uint32_t>(one.expected));
        say(one, "wrote the media byte into the FAT");
        return true;
    }
    if (not may_be_info()) return false;
    ENSURE(found_.free_clusters <= shape_.cluster_count, "there are no more clusters");
    const info_sector info =
        encode_info({.free_count = static_cast<std::uint32_t>(found_.free_clusters), .next_free = {}});
    if (const auto done = image_.write_at(*shape_.info_offset, bytes_of(info).span()); not done)
        return failure(done.error());
    say(one, "wrote the number of free clusters into FSInfo");
    return true;
}

}  // namespace sluice::fat

#pragma once

#include <set>

#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/check/repair_options.hpp"
#include "sluice/fat/edit/directory_slots.hpp"

namespace sluice::fat {

/// The stage in which a problem is repaired; smaller first. A stage begins when no problem of an
/// earlier one is left.
enum class repair_stage : std::uint8_t { boot, tables, root, chains, lengths, entries, lost, marks, never };
[[nodiscard]] repair_stage stage_of(problem_kind kind) noexcept;

/// One round of a repair: the remedies for the problems of one stage of one report.
///
/// Invariant: every change of the FAT goes through `table_`, and reaches the disk before any change
/// of an entry that makes it needed, or after one that makes it superfluous: see each remedy.
class repair_round {
public:
    repair_round(device& image, const check_report& found, const repair_options& options,
                 std::vector<std::string>& actions)
        : image_(image), found_(found), shape_(*found.shape), options_(options), actions_(actions) {}

    /// Applies the remedies of `stage`. `renamed` are the slots whose names earlier rounds have
    /// changed.
    /// Returns the number of applied remedies. Errors: those of the device.
    [[nodiscard]] result<unsigned> run(repair_stage stage, std::set<std::uint64_t>& renamed);

private:
    // Each returns whether it changed anything.
    result<bool> repair(const problem& one, std::set<std::uint64_t>& renamed);
    result<bool> repair_boot_sector();
    result<bool> repair_tables();
    result<bool> repair_chain(const problem& one);
    result<bool> repair_cross_link(const problem& one);
    [[nodiscard]] std::optional<std::uint64_t> clusters_up_to(std::uint32_t last, std::uint32_t first) const;
    [[nodiscard]] std::vector<std::uint32_t> shared_from(std::uint32_t first, std::uint64_t most);
    result<bool> copy_shared(const problem& one, const directory_entry& entry);
    result<bool> repair_length(const problem& one);
    result<bool> repair_dot_entries(const problem& one);
    result<bool> move_set_at(std::uint64_t offset);
    result<bool> repair_name(const problem& one, std::set<std::uint64_t>& renamed);
    result<bool> drop_pieces(const problem& one);
    result<bool> save_lost();
    struct lost_chain {
        short_name_bytes name;
        std::uint32_t first;
        std::uint32_t clusters;
    };
    result<bool> save_chain(directory_slots& root, const lost_chain& lost);
    result<bool> repair_dirty_marks(const problem& one);
    [[nodiscard]] bool has_seen_everything() const noexcept;
    [[nodiscard]] bool may_be_info() noexcept;
    [[nodiscard]] std::optional<std::uint8_t> media_of_fats() noexcept;

    result<void> load_table();
    result<bool> free_slot(const problem& one);
    void say(const problem& one, const std::string& what);
    [[nodiscard]] cluster_width width() const noexcept {
        return shape_.type == fat_type::fat32 ? cluster_width::four_bytes : cluster_width::two_bytes;
    }

    device& image_;
    const check_report& found_;
    geometry shape_;
    repair_options options_;
    std::vector<std::string>& actions_;
    std::optional<table_editor> table_;
    std::optional<const table_editor> as_found_;  // the table before this round, if chains cross
    std::vector<bool> is_seen_;                   // for shared_from(), by cluster;
                                                  // all false between calls
};

}  // namespace sluice::fat

#pragma once

#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "sluice/fat/check/check_options.hpp"
#include "sluice/fat/check/check_report.hpp"
#include "sluice/fat/codec/directory_entry.hpp"
#include "sluice/fat/codec/label.hpp"
#include "sluice/fat/codec/long_name.hpp"
#include "sluice/fat/edit/chain_map.hpp"

namespace sluice::fat {

/// Collects problems up to a limit, and counts the rest.
class problem_list {
public:
    problem_list(check_report& report, std::size_t most) noexcept : report_(report), most_(most) {}
    void add(problem one) {
        if (report_.problems.size() < most_)
            report_.problems.push_back(std::move(one));
        else
            ++report_.problems_left_out;
    }

private:
    check_report& report_;
    std::size_t most_;
};

/// The part of a check that reads the directories.
///
/// Invariants:
///   1. Every object, a file or directory, has an index of its own in `objects_`; it owns in the
///      chain_map the clusters its chain reached first. The root is object 1.
///   2. A directory is read only if it owns its first cluster, so each is read once,
///      whatever leads to it.
/// Thread safety: none of its own.
class tree_check {
public:
    tree_check(device& image, chain_map& map, check_report& report, const check_options& options);

    /// Reads the whole tree. Errors: none; the part past the end of a truncated image is skipped.
    void run();

    /// Returns the path of the owner of a cluster. Allocates: the string.
    [[nodiscard]] std::string path_of(chain_map::object which) const;
    /// Returns the label in the root directory, if there is one.
    [[nodiscard]] const std::optional<label_bytes>& root_label() const noexcept { return root_label_; }

private:
    struct object {
        std::string name;
        chain_map::object parent;
    };
    struct directory {
        chain_map::object which;
        std::uint32_t first;         // 0: the fixed root
        std::uint32_t parent_first;  // what its `..` must say
        std::uint32_t length;        // clusters
        bool is_root;
        std::uint64_t slot_offset;
    };
    // The content of one slot, and the long name before it.
    struct slot {
        directory_entry entry;
        std::uint64_t offset;
        std::uint64_t first_long_slot;  // 0: none
        std::string name;
        bool has_long_name;
    };
    // The state of reading one directory.
    struct reading {
        const directory& where;
        std::uint32_t number = 0;  // number of slots read
        bool has_ended = false;
        long_name_collector long_name;
        std::uint64_t first_long_slot = 0;
        std::uint32_t long_slots = 0;
        std::unordered_set<std::string> names;  // keys by which they are compared
    };

    void add_root();
    void read_directory(const directory& where);
    bool read_extent(reading& state, byte_extent extent);
    void inspect(reading& state, const directory_entry& entry, std::uint64_t offset);
    void inspect_entry(reading& state, const slot& one, slot_kind kind);
    void inspect_dots(reading& state, const slot& one);
    void inspect_label(const reading& state, const slot& one);
    void inspect_names(reading& state, const slot& one, const problem& about);
    void inspect_chain(const slot& one, const problem& about, chain_map::object which);
    void enter_directory(const reading& state, const slot& one, const problem& about,
                         chain_map::object which);
    void report_ending(const chain_map::outcome& found, problem about);
    void drop_long_name(reading& state);
    void check_dots_present(const reading& state);

    [[nodiscard]] std::uint32_t first_of(const directory_entry& entry) const noexcept;
    [[nodiscard]] problem about(const reading& state, const slot& one) const;

    device& image_;
    chain_map& map_;
    check_report& report_;
    problem_list problems_;
    check_options options_;
    std::vector<object> objects_;
    std::deque<directory> to_read_;
    std::optional<label_bytes> root_label_;
    std::vector<std::byte> room_;  // buffer for one read of a directory
};

}  // namespace sluice::fat

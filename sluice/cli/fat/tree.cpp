#include "sluice/cli/fat/tree.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

// Deeper, each step would use the volume's whole memory for directories (fat::file_system keeps
// 1,024).
constexpr std::size_t levels_max = 1000;

// Entries listed at a time: copying begins before a large directory is listed completely, and a
// directory that has left the file system's memory is not loaded again for each of its entries.
constexpr std::size_t batch_entries_max = 256;

std::string path_in(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory + "/" + name;
}

/// A directory while it is listed.
struct open_directory {
    fat::inode_handle held{};
    std::string path;
    std::uint32_t next_slot = 0;
    bool is_at_end = false;

    /// Appends the next entries to `found`, with their names as paths: `most`, or fewer at the end.
    [[nodiscard]] result<void> list(fat::file_system& system, std::size_t most,
                                    std::vector<tree_entry>& found) {
        if (is_at_end) return {};
        std::vector<fat::file_system::listed> listed;
        const auto done = system.list(*held, next_slot, most, listed);
        is_at_end = not done or listed.size() != most;
        for (auto& each : listed)
            found.push_back({.path = std::move(each.name), .status = each.status});
        if (not listed.empty()) next_slot = listed.back().slot + 1;
        return done;
    }
};

/// A walk through a tree: the directories from its top down to the present one. Each cluster
/// chain is listed once.
class tree_walk {
public:
    tree_walk(fat::file_system& system, const tree_visitor& visitor) : system_(system), visitor_(visitor) {}

    /// Goes down into a directory, if it can be read.
    void enter(std::string path) {
        if (levels_.size() == levels_max)
            return visitor_.report(problem_of(path, fmt::format("not read: it is more than {} directories "
                                                                "deep; move it up with 'sluice fat mv'",
                                                                levels_max)));
        auto directory = system_.find(path);
        if (not directory) return visitor_.report(problem_of(path, directory.error()));
        const auto state = system_.state_of(**directory);
        if (not state) return visitor_.report(problem_of(path, state.error()));
        if (not seen_.insert(state->first_cluster).second)
            return visitor_.report(problem_of(path, error(ELOOP, "list directory")));
        if (state->is_cut_off)
            visitor_.report(problem_of(
                path, "damaged directory, so entries after the damage are missing; run 'sluice fat check'"));
        levels_.push_back({.directory = {.held = *std::move(directory), .path = std::move(path)}});
    }

    /// Returns the next entry, with its path. Goes up at the end of a directory.
    [[nodiscard]] std::optional<tree_entry> next() {
        while (not levels_.empty()) {
            level& present = levels_.back();
            if (present.next == present.batch.size() and not fill(present)) {
                levels_.pop_back();
                continue;
            }
            tree_entry entry = std::move(present.batch[present.next++]);
            entry.path = path_in(present.directory.path, entry.path);
            return entry;
        }
        return std::nullopt;
    }

private:
    // Names, not paths: those of large directories at the end of a long path would take gigabytes.
    struct level {
        open_directory directory;
        std::vector<tree_entry> batch{};
        std::size_t next = 0;
    };

    [[nodiscard]] bool fill(level& present) {
        present.next = 0;
        present.batch.clear();
        const auto listed = present.directory.list(system_, batch_entries_max, present.batch);
        if (not listed) visitor_.report(problem_of(present.directory.path, listed.error()));
        return not present.batch.empty();
    }

    fat::file_system& system_;
    const tree_visitor& visitor_;
    std::vector<level> levels_;
    std::set<std::uint32_t> seen_;  // first clusters
};

}  // namespace

object_problem problem_of(const std::string& path, const error& why) {
    return problem_of(path,
                      why == std::errc::too_many_symbolic_link_levels
                          ? std::string("its clusters belong to another directory; run 'sluice fat check'")
                          : fat_reason(why));
}

object_problem problem_of(const std::string& path, const std::string& why) {
    return {.what = shown(path), .why = terminal_text(why)};
}

object_problem problem_of_target(const std::string& target, const error& why) {
    const bool is_of_all = why == std::errc::no_space_on_device or why == std::errc::read_only_file_system or
                           why.code() == EDQUOT;
    return {.what = terminal_text(target), .why = why.reason(), .ends_the_command = is_of_all};
}

void unreadable_objects::report(const std::string& path, const error& why) {
    report(problem_of(path, why));
}

void unreadable_objects::report(const std::string& path, const std::string& why) {
    report(problem_of(path, why));
}

void unreadable_objects::report(const object_problem& problem) {
    ++count_;
    if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\x1b[K");  // erases the bar
    print_error(problem.what + ": " + problem.why);
    if (problem.ends_the_command) leave(exit_code::failure);
}

void unreadable_objects::leave_if_any() const {
    if (count_ == 0) return;
    fail(fmt::format("{} not complete", count_ == 1 ? "1 object is" : fmt::format("{} objects are", count_)));
}

fat::inode_handle find_or_fail(fat::file_system& system, const std::string& path) {
    return value_or_fail(system.find(path), shown(path));
}

std::vector<tree_entry> entries_of(fat::file_system& system, const std::string& path) {
    open_directory directory{.held = find_or_fail(system, path), .path = path};
    std::vector<tree_entry> found;
    succeed_or_fail(directory.list(system, SIZE_MAX, found), shown(path));
    for (tree_entry& each : found)
        each.path = path_in(path, each.path);
    return found;
}

void for_each_below(fat::file_system& system, const std::string& path, const tree_visitor& visitor) {
    {
        const fat::inode_handle top = find_or_fail(system, path);
        const fat::inode_status status = system.status(*top);
        if (not status.is_directory) return (void)visitor.visit({.path = path, .status = status});
    }
    tree_walk walk(system, visitor);
    walk.enter(path);
    while (auto entry = walk.next()) {
        const bool is_directory = entry->status.is_directory;
        std::string below = is_directory ? entry->path : std::string();
        if (not visitor.visit(*std::move(entry))) return;
        if (is_directory) walk.enter(std::move(below));
    }
}

std::vector<tree_entry> tree_of(fat::file_system& system, const std::string& path,
                                unreadable_objects& skipped) {
    std::vector<tree_entry> found;
    for_each_below(system, path,
                   {.visit =
                        [&](tree_entry each) {
                            found.push_back(std::move(each));
                            return true;
                        },
                    .report = [&](const object_problem& each) { skipped.report(each); }});
    return found;
}

result<std::uint64_t> runs_of(fat::file_system& system, fat::inode& file) {
    std::uint64_t runs = 0;
    std::optional<std::uint64_t> end;
    const auto done = system.for_each_extent(file, {.offset = 0, .length = system.status(file).size_bytes},
                                             [&](const fat::file_system::piece& piece) {
                                                 if (not piece.place) return true;
                                                 runs += piece.place != end;
                                                 end = *piece.place + piece.length;
                                                 return true;
                                             });
    if (not done) return failure(done.error());
    return runs;
}

fat::lookup_strategy strategy_of(const std::string& name) {
    if (name == "naive") return fat::lookup_strategy::naive;
    return name == "cursor" ? fat::lookup_strategy::cursor : fat::lookup_strategy::runs;
}

}  // namespace sluice::cli

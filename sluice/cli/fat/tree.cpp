#include "sluice/cli/fat/tree.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

// Below that, each step would take the volume's whole memory for directories (fat::file_system keeps 1,024).
constexpr std::size_t levels_max = 1000;

/// The entries of one directory, and why not all of them, if so.
struct directory_content {
    std::vector<tree_entry> entries;
    std::optional<error> problem;
    bool is_cut_off = false;
};

directory_content content_of(fat::file_system& system, fat::item& directory, const std::string& path) {
    directory_content found;
    for (std::uint32_t slot = 0;;) {
        const auto next = system.list(directory, slot);
        if (not next) {
            found.problem = next.error();
            return found;
        }
        if (not*next) return found;
        const auto& entry = **next;
        found.entries.push_back(
            {.path = path.empty() ? entry.name : path + "/" + entry.name, .status = entry.status});
        slot = entry.slot + 1;
    }
}

/// Lists directories, each cluster chain once.
class directory_reader {
public:
    directory_reader(fat::file_system& system, unreadable_objects& skipped)
        : system_(system), skipped_(skipped) {}

    [[nodiscard]] std::vector<tree_entry> read(const std::string& path) {
        const auto directory = system_.find(path);
        if (not directory) return fail(path, directory.error());
        const auto state = system_.state_of(**directory);
        if (not state) return fail(path, state.error());
        if (not seen_.insert(state->first_cluster).second) return fail(path, error(ELOOP, "list directory"));
        directory_content found = content_of(system_, **directory, path);
        if (found.problem) skipped_.report(path, *found.problem);
        if (state->is_cut_off)
            skipped_.report(path, "damaged directory; entries after the damage are missing");
        return std::move(found.entries);
    }

private:
    std::vector<tree_entry> fail(const std::string& path, const error& why) {
        skipped_.report(path, why);
        return {};
    }

    fat::file_system& system_;
    unreadable_objects& skipped_;
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
    return {.what = terminal_text(target),
            .why = std::generic_category().message(why.code()),
            .ends_the_command = is_of_all};
}

void unreadable_objects::report(const std::string& path, const error& why) {
    report(problem_of(path, why));
}

void unreadable_objects::report(const std::string& path, const std::string& why) {
    report(problem_of(path, why));
}

void unreadable_objects::report(const object_problem& problem) {
    ++count_;
    const char* const erase_bar = ::isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "";
    fmt::print(stderr, "{}sluice fat: {}: {}\n", erase_bar, problem.what, problem.why);
    if (problem.ends_the_command) leave(exit_code::failure);
}

void unreadable_objects::leave_if_any() const {
    if (count_ == 0) return;
    fmt::print(stderr, "sluice fat: {} {} not complete\n", count_, count_ == 1 ? "object is" : "objects are");
    leave(exit_code::failure);
}

fat::item_handle find_or_fail(fat::file_system& system, const std::string& path) {
    return value_or_fail(system.find(path), shown(path));
}

std::vector<tree_entry> entries_of(fat::file_system& system, const std::string& path) {
    const fat::item_handle directory = find_or_fail(system, path);
    directory_content found = content_of(system, *directory, path);
    if (found.problem) fail_fat(fat_message(*found.problem, shown(path)));
    return std::move(found.entries);
}

void for_each_below(fat::file_system& system, const std::string& path, unreadable_objects& skipped,
                    const std::function<void(const tree_entry&)>& visit) {
    {
        const fat::item_handle top = find_or_fail(system, path);
        const fat::item_status status = system.status(*top);
        if (not status.is_directory) return visit({.path = path, .status = status});
    }
    struct level {
        std::vector<tree_entry> entries;
        std::size_t next = 0;
    };
    directory_reader reader(system, skipped);
    std::vector<level> levels;
    levels.push_back({.entries = reader.read(path)});
    while (not levels.empty()) {
        level& present = levels.back();
        if (present.next == present.entries.size()) {
            levels.pop_back();
            continue;
        }
        const tree_entry entry = std::move(present.entries[present.next++]);
        visit(entry);
        if (not entry.status.is_directory) continue;
        if (levels.size() == levels_max)
            skipped.report(entry.path,
                           fmt::format("not read: it is more than {} directories deep; move it up "
                                       "with 'sluice fat mv'",
                                       levels_max));
        else
            levels.push_back({.entries = reader.read(entry.path)});
    }
}

std::vector<tree_entry> tree_of(fat::file_system& system, const std::string& path,
                                unreadable_objects& skipped) {
    std::vector<tree_entry> found;
    for_each_below(system, path, skipped, [&](const tree_entry& each) { found.push_back(each); });
    return found;
}

result<std::uint64_t> runs_of(fat::file_system& system, fat::item& file) {
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

// sluice fat mkdir, rm, mv, defrag: changes names and the location of files.

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/tree.hpp"
#include "sluice/fat/check/check.hpp"

namespace sluice::cli {
namespace {

struct change_arguments {
    image_options how;
    std::vector<std::string> operands;
    bool with_parents = false;
    bool is_recursive = false;
};

void make_with_parents(fat::file_system& system, const std::string& path) {
    for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
        const std::string front = path.substr(0, slash);
        const auto made = system.create(front, true, fat::attributes::none);
        if (not made and made.error() != std::errc::file_exists)
            fail(fat_message(made.error(), shown(front)));
        if (slash == path.npos) return;
    }
}

void run_mkdir(const change_arguments& arguments) {
    const image_name name = parse_image(arguments.operands[0]);
    mounted_image mounted(name, image_use::write, arguments.how);
    if (arguments.with_parents)
        make_with_parents(mounted.system(), name.path);
    else
        (void)value_or_fail(mounted.system().create(name.path, true, fat::attributes::none),
                            shown(name.path));
    mounted.finish();
}

void remove_one(fat::file_system& system, const std::string& path) {
    const fat::inode_handle inode = find_or_fail(system, path);
    const auto removed = system.remove(*inode);
    if (not removed and removed.error() == std::errc::directory_not_empty)
        fail(shown(path) + ": the directory is not empty; use -r to remove directories and their contents");
    succeed_or_fail(removed, shown(path));
}

void run_rm(const change_arguments& arguments) {
    const image_name name = parse_image(arguments.operands[0]);
    if (name.path.empty()) fail("/: the root cannot be removed; 'sluice fat mkfs --force' empties a volume");
    mounted_image mounted(name, image_use::write, arguments.how);
    fat::file_system& system = mounted.system();
    if (arguments.is_recursive) {
        unreadable_objects skipped;
        auto entries = tree_of(system, name.path, skipped);
        skipped.leave_if_any();  // before anything is removed
        for (auto each = entries.rbegin(); each != entries.rend(); ++each)
            if (each->path != name.path) remove_one(system, each->path);
    }
    remove_one(system, name.path);
    mounted.finish();
}

void run_mv(const change_arguments& arguments) {
    const image_name name = parse_image(arguments.operands[0]);
    if (name.path.empty()) fail("/: the root cannot be moved");
    std::string to = arguments.operands[1];
    if (to.starts_with(name.file + ":")) to = parse_image(to).path;
    to.erase(0, std::min(to.find_first_not_of('/'), to.size()));
    to.erase(to.find_last_not_of('/') + 1);
    mounted_image mounted(name, image_use::write, arguments.how);
    fat::file_system& system = mounted.system();
    {
        const fat::inode_handle inode = find_or_fail(system, name.path);
        const auto there = system.find(to);
        const bool is_into =
            there and (*there)->is_directory and system.status(**there).id != system.status(*inode).id;
        if (is_into) to += (to.empty() ? "" : "/") + name.path.substr(name.path.rfind('/') + 1);
        const auto renamed = system.rename(*inode, to, fat::file_system::if_taken::replace);
        if (not renamed and renamed.error() == std::errc::invalid_argument)
            fail(shown(to) + ": rename: a directory cannot be moved into itself");
        succeed_or_fail(renamed, shown(to));
    }
    mounted.finish();
}

// Returns the number of runs by which the file has fewer.
std::uint64_t defragment(fat::file_system& system, const std::string& path, unreadable_objects& skipped) {
    const auto file = system.find(path);
    const auto counts = file ? system.defragment(**file) : failure(file.error());
    if (not counts) {
        skipped.report(path, counts.error());
        return 0;
    }
    if (counts->before < 2) return 0;
    if (counts->after == counts->before)
        fmt::print("{}: remains in {} runs, because no better space is free\n", shown(path), counts->before);
    else
        fmt::print("{}: {} runs, were {}\n", shown(path), counts->after, counts->before);
    return counts->before - counts->after;
}

// Moving a file frees its clusters: another file that shares them would lose its data.
void refuse_shared_clusters(mounted_image& mounted, const image_options& how) {
    const auto report =
        value_or_fail(fat::check(mounted.image().volume(), {.page = mount_options_of(how).value().page}),
                      mounted.image().path());
    const bool is_shared = std::ranges::any_of(
        report.problems, [](const fat::problem& each) { return each.kind == fat::problem_kind::cross_link; });
    if (is_shared or report.problems_left_out != 0)
        fail(fmt::format("{}: files share clusters; run 'sluice fat repair {}' first", mounted.image().path(),
                         mounted.image().path()));
}

void run_defrag(const change_arguments& arguments) {
    const image_name name = parse_image(arguments.operands[0]);
    mounted_image mounted(name, image_use::write, arguments.how);
    fat::file_system& system = mounted.system();
    refuse_shared_clusters(mounted, arguments.how);
    std::uint64_t gone = 0;
    unreadable_objects skipped;
    for (const tree_entry& each : tree_of(system, name.path, skipped))
        if (not each.status.is_directory) gone += defragment(system, each.path, skipped);
    mounted.finish();
    fmt::print("{} runs fewer\n", gone);
    skipped.leave_if_any();
}

}  // namespace

void add_fat_modify(command_syntax fat) {
    const auto add = [&](const char* name, const char* what, const char* example, auto run) {
        const auto arguments = std::make_shared<change_arguments>();
        const command_syntax command = fat.add_subcommand(name, what).example(example);
        add_image_options(command, arguments->how);
        command.on_call([arguments, run] { run(*arguments); });
        return std::pair(command, arguments);
    };
    const auto operand = [](command_syntax command, change_arguments& arguments) {
        command
            .add_option("IMAGE:/PATH", arguments.operands,
                        "file or directory on the volume, as in disk.img:/notes")
            .required()
            .expected(1);
    };
    const auto [mkdir, making] =
        add("mkdir", "create a directory", "sluice fat mkdir -p disk.img:/logs/boot", run_mkdir);
    operand(mkdir, *making);
    mkdir.add_flag("-p,--parents", making->with_parents,
                   "create missing parents; succeed if the directory exists");
    const auto [rm, removing] =
        add("rm", "remove a file or an empty directory", "sluice fat rm -r disk.img:/logs", run_rm);
    operand(rm, *removing);
    rm.add_flag("-r,--recursive", removing->is_recursive, "remove directories and their contents");
    const auto [mv, moving] = add("mv", "rename or move a file or directory within the volume",
                                  "sluice fat mv disk.img:/config.txt disk.img:/config.old", run_mv);
    mv.add_option("IMAGE:/PATH TARGET", moving->operands, "present path, and new path on the same volume")
        .required()
        .expected(2);
    const auto [defrag, joining] =
        add("defrag", "rewrite fragmented files in fewer extents, as far as free space allows",
            "sluice fat defrag disk.img:/", run_defrag);
    operand(defrag, *joining);
}

}  // namespace sluice::cli

// sluice cp, mv: copies and moves files between shares, and between shares and this machine.

#include <algorithm>
#include <optional>
#include <set>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/copy_commands.hpp"
#include "sluice/cli/smb/getter.hpp"
#include "sluice/cli/smb/remote_copier.hpp"
#include "sluice/cli/smb/remote_removal.hpp"
#include "sluice/cli/smb/uploader.hpp"

namespace sluice::cli {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

struct transfer_arguments {
    copy_options how;
    std::vector<std::string> operands;
    bool replaces = false;
};

// The two ends of one copy or move.
struct ends {
    remote_share& from;
    remote_share& to;
    std::string source;
    std::string target;

    [[nodiscard]] bool is_one_share() const noexcept {
        return fold(from.url().host) == fold(to.url().host) and from.url().port == to.url().port and
               fold(from.url().share) == fold(to.url().share);
    }
};

[[nodiscard]] bool is_below(const std::string& path, const std::string& directory) {
    const std::string inner = fold(path);
    const std::string outer = fold(directory);
    return outer.empty() or inner.starts_with(outer + "/");
}

// Returns the target, or the name in it if it is a directory. A change of case has one object.
[[nodiscard]] std::string final_target(const ends& of, bool is_only_source) {
    const auto there = of.to.run(of.to.tree().status(of.target));
    if (not there and there.error().is_of_connection()) of.to.fail(of.target, there.error().message());
    const bool is_same = of.is_one_share() and fold(of.source) == fold(of.target);
    const bool is_into = there and is_directory(*there) and not is_same;
    if (not is_into and not is_only_source)
        of.to.fail(of.target, "not a directory; several sources require a directory as the target");
    const std::string own_name = of.source.empty() ? of.from.url().share : last_name_of(of.source);
    return is_into ? joined_path(of.target, own_name) : of.target;
}

// The folded names of the targets of one command. Two sources must not become one target: most
// servers ignore case.
using taken_names = std::set<std::string>;

// The files and directories of a copy.
struct listed_copy {
    std::vector<copied_file> files;
    std::vector<copied_file> later_files;  // copied after `files`, which they must not replace
    std::vector<remote_entry> directories;
};

[[nodiscard]] std::string target_of(const ends& of, const remote_entry& entry) {
    const std::string below = entry.path.substr(of.source.size());
    return of.target.empty() and below.starts_with('/') ? below.substr(1) : of.target + below;
}

// Links and partial files are reported.
[[nodiscard]] listed_copy list_copy(const ends& of, bool is_recursive, taken_names& taken) {
    listed_copy all;
    for (const remote_entry& each : entries_of(of.from, of.source, is_recursive)) {
        const std::string to = target_of(of, each);
        const bool is_source_itself = each.path.size() == of.source.size();
        if (is_link(each.status)) {
            of.from.warn(each.path, "skipped: a link that the server does not follow");
        } else if (not is_source_itself and partial_names::is_one(last_name_of(each.path))) {
            of.from.warn(each.path, "skipped: the partial file of an interrupted copy");
        } else if (is_directory(each.status)) {
            ensure_directory(of.to, to);
            all.directories.push_back(each);
        } else {
            const bool is_first = taken.insert(fold(to)).second;
            (is_first ? all.files : all.later_files)
                .push_back({.from = each, .to = to, .may_replace = is_first});
        }
    }
    return all;
}

void copy_between(ends of, const copy_options& how, bool is_only_source, taken_names& taken) {
    of.target = final_target(of, is_only_source);
    if (of.is_one_share() and fold(of.target) == fold(of.source))
        of.to.fail(of.target, "is the source; use another target");
    if (of.is_one_share() and how.is_recursive and is_below(of.target, of.source))
        of.to.fail(of.target, "is in the directory that is copied; use another target");
    listed_copy all = list_copy(of, how.is_recursive, taken);
    std::size_t failures = 0;
    for (std::vector<copied_file>* const files : {&all.files, &all.later_files})
        failures += create_remote_copier(of.from, of.to, how, *files)->copy_all(files->size());
    if (failures != 0) of.from.fail(of.source, "some files were not copied");
}

// Leaves, before anything is changed, if an entry cannot be moved completely.
void check_movable(const ends& of, const std::vector<remote_entry>& entries) {
    std::vector<std::optional<std::string>> reasons(entries.size(),
                                                    "the connection was lost; nothing was moved");
    of.from.run(for_each_at_once(of.from, entries.size(), [&](std::size_t i) -> io::task<void> {
        return
            [](const ends& of, const std::string& path, std::optional<std::string>& met) -> io::task<void> {
                io::task<std::optional<std::string>> checking = why_not_movable(of.from.tree(), path);
                met = co_await std::move(checking);
            }(of, entries[i].path, reasons[i]);
    }));
    for (std::size_t i = 0; i != entries.size(); ++i)
        if (reasons[i]) of.from.fail(entries[i].path, *reasons[i]);
}

// Nothing is created if something cannot be moved.
[[nodiscard]] listed_copy list_move(const ends& of, bool replaces, taken_names& taken) {
    listed_copy all;
    const auto entries = entries_of(of.from, of.source, true, link_contents::hidden);
    check_movable(of, entries);
    for (const remote_entry& each : entries) {
        const std::string to = target_of(of, each);
        if (not taken.insert(fold(to)).second)
            of.from.fail(each.path,
                         "another source has the same name, or one that differs only in case; it was not "
                         "moved: move it to another directory");
        if (is_directory(each.status))
            all.directories.push_back(each);
        else
            all.files.push_back({.from = each, .to = to, .may_replace = replaces, .is_moved = true});
    }
    for (const remote_entry& each : all.directories)
        ensure_directory(of.to, target_of(of, each));
    return all;
}

// Everything is copied before anything is removed.
void move_between(const ends& of, const transfer_arguments& arguments, taken_names& taken) {
    listed_copy all = list_move(of, arguments.replaces, taken);
    if (create_remote_copier(of.from, of.to, arguments.how, all.files)->copy_all(all.files.size()) != 0)
        of.from.fail(of.source, "some files were not copied, so nothing was removed");
    std::size_t failures = 0;
    for (const copied_file& each : all.files) {
        const auto met = of.from.run(remove_copied(of.from, each));
        if (not met) continue;
        ++failures;
        of.from.print_error(each.from.path, *met);
    }
    for (std::size_t i = all.directories.size(); i-- != 0 and failures == 0;) {
        const auto removed = of.from.run(remove_unchanged(of.from.tree(), all.directories[i]));
        if (not removed) continue;
        ++failures;
        of.from.print_error(all.directories[i].path, *removed);
    }
    if (failures != 0) of.from.fail(of.source, "was copied, but not completely removed");
}

void move_one(ends of, const transfer_arguments& arguments, bool is_only_source, taken_names& taken) {
    if (of.source.empty()) of.from.fail(of.source, "the root of a share cannot be moved");
    of.target = final_target(of, is_only_source);
    if (of.is_one_share() and is_below(of.target, of.source))
        of.to.fail(of.target, "is in the directory that is moved; use another target");
    if (not of.is_one_share()) {
        const auto there = of.to.run(of.to.tree().status(of.target));
        if (there and is_directory(*there))
            of.to.fail(of.target,
                       "a directory with this name already exists; use 'sluice cp -r', then 'sluice rm -r'");
        if (there and not arguments.replaces)
            of.to.fail(of.target, "the name already exists; use --force to replace a file");
        return move_between(of, arguments, taken);
    }
    if (not taken.insert(fold(of.target)).second)
        of.from.fail(of.source,
                     "another source has the same name, or one that differs only in case; it was not moved: "
                     "move it to another directory");
    const auto renamed = of.from.run(of.from.tree().rename(of.source, of.target, arguments.replaces));
    if (renamed) return;
    if (renamed.error().status() == nt_status::object_name_collision)
        of.to.fail(of.target, "the name already exists; use --force to replace a file");
    of.from.fail(of.source, renamed.error().message());
}

template <class What>
void for_each_source(const transfer_arguments& arguments, What what) {
    const smb_url target = url_operand(arguments.operands.back());
    const std::size_t sources = arguments.operands.size() - 1;
    for (std::size_t i = 0; i != sources; ++i) {
        remote_share from(arguments.operands[i], arguments.how.remote);
        remote_share to(target, arguments.how.remote, &from);
        what(ends{.from = from, .to = to, .source = from.url().path, .target = target.path}, sources == 1);
    }
}

void run_cp(const transfer_arguments& arguments) {
    const auto& operands = arguments.operands;
    const auto remote_sources = std::count_if(operands.begin(), operands.end() - 1, is_smb_url);
    const bool is_to_share = is_smb_url(operands.back());
    const auto sources = static_cast<std::ptrdiff_t>(operands.size() - 1);
    if (remote_sources == 0 and is_to_share) return copy_to_share(operands, arguments.how);
    if (remote_sources == 0) refuse_usage("no operand is a URL; use 'cp' of the system for local files");
    if (remote_sources != sources)
        refuse_usage("sources on this machine and on servers are mixed; copy them one after the other");
    if (is_to_share) {
        taken_names taken;
        for_each_source(arguments, [&](const ends& of, bool is_only) {
            copy_between(of, arguments.how, is_only, taken);
        });
        return;
    }
    for (std::size_t i = 0; i + 1 != operands.size(); ++i)
        copy_from_share(operands[i], operands.back(), arguments.how);
}

void run_mv(const transfer_arguments& arguments) {
    taken_names taken;
    for_each_source(arguments,
                    [&](const ends& of, bool is_only) { move_one(of, arguments, is_only, taken); });
}

}  // namespace

void add_cp(command_syntax app) {
    const auto arguments = std::make_shared<transfer_arguments>();
    const command_syntax cp = app.add_subcommand("cp", "copy files between SMB servers and this machine")
                                  .group("Client")
                                  .example("sluice cp -r //server/photos/2026 //backup/photos/");
    cp.add_option("SOURCE... TARGET", arguments->operands,
                  "local paths, or smb://[[DOMAIN;]USER@]HOST[:PORT]/SHARE/PATH")
        .required()
        .expected(2, -1);
    cp.add_flag("-r,--recursive", arguments->how.is_recursive, "copy directories recursively");
    cp.add_flag("--resume", arguments->how.resumes,
                "from or to this machine: skip files that are complete; continue partial ones");
    cp.add_flag("--checksum", arguments->how.verifies,
                "from or to this machine: read each file back after copying and compare");
    add_progress_options(cp, arguments->how);
    add_remote_options(cp, arguments->how.remote);
    cp.on_call([arguments] { run_cp(*arguments); });
}

void add_mv(command_syntax app) {
    const auto arguments = std::make_shared<transfer_arguments>();
    const command_syntax mv = app.add_subcommand("mv", "rename or move files on SMB servers")
                                  .group("Client")
                                  .example("sluice mv //server/inbox/a.pdf //server/archive/");
    mv.add_option("SOURCE... URL", arguments->operands,
                  "files or directories, and the target, smb://[[DOMAIN;]USER@]HOST[:PORT]/SHARE/PATH")
        .required()
        .expected(2, -1);
    mv.add_flag("-f,--force", arguments->replaces, "replace existing files");
    add_progress_options(mv, arguments->how);
    add_remote_options(mv, arguments->how.remote);
    mv.on_call([arguments] { run_mv(*arguments); });
}

}  // namespace sluice::cli

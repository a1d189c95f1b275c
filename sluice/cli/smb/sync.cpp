// sluice sync: makes a directory of a share like one of this machine, or the other way round.

#include <fmt/core.h>

#include <filesystem>
#include <set>
#include <utility>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/getter.hpp"
#include "sluice/cli/smb/local_removal.hpp"
#include "sluice/cli/smb/local_tree.hpp"
#include "sluice/cli/smb/remote_removal.hpp"
#include "sluice/cli/smb/uploader.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

struct sync_arguments {
    copy_options how;
    std::string source;
    std::string target;
    std::string links = "skip";
    bool removes = false;
    bool only_shows = false;
};

// A tree of a share, with paths below its root.
struct remote_tree_list {
    std::vector<sync_entry> entries;
    std::vector<remote_entry> remote;
};

[[nodiscard]] remote_tree_list list_remote(remote_share& share, bool is_target) {
    const std::string& root = share.url().path;
    remote_tree_list made;
    const auto status = share.run(share.tree().status(root));
    if (not status) {
        if (is_target and status.error().code() == ENOENT) return made;
        share.fail(root, status.error().message());
    }
    if (not is_directory(*status)) share.fail(root, "is not a directory; use 'sluice cp' to copy a file");
    // Nothing is written or removed through a link of the target.
    const auto links = is_target ? link_contents::hidden : link_contents::listed;
    auto listed = share.run(entries_below(share.tree(), root, links));
    if (not listed) share.fail(root, listed.error().message());
    made.remote = *std::move(listed);
    for (const remote_entry& each : made.remote) {
        const auto kind = is_link(each.status)        ? sync_entry::kind::other
                          : is_directory(each.status) ? sync_entry::kind::directory
                                                      : sync_entry::kind::file;
        made.entries.push_back({.path = each.path.substr(root.empty() ? 0 : root.size() + 1),
                                .is = kind,
                                .bytes = each.status.end_of_file_bytes,
                                .modified = each.status.last_write_time.ticks});
    }
    return made;
}

// One direction of a synchronisation.
class synchronisation {
public:
    synchronisation(remote_share& share, const sync_arguments& arguments, fs::path root)
        : share_(share), arguments_(arguments), root_(std::move(root)) {}

    // Returns whether everything is the same now.
    bool to_share() {
        const bool follows = arguments_.links == "follow";
        const local_tree here =
            list_local_tree(root_, follows ? link_policy::follow : link_policy::skip, mount_policy::enter);
        const remote_tree_list there = list_remote(share_, true);
        report(here.problems);
        const sync_plan plan =
            plan_sync(here.entries, there.entries, {.removes = arguments_.removes, .ignores_case = true});
        report(plan, true);
        if (arguments_.only_shows) return show(plan, here.entries, there.entries);
        create_parents(share_.url().path);
        for (const std::size_t each : plan.directories)
            create_remote(remote_path(here.entries[each].path));
        // A link that appears after the list was made is not followed either.
        const auto anchor = io::path_handle::open({}, root_.string());
        if (not anchor) share_.fail_here(about(root_.string(), anchor.error()));
        const auto confined = io::path_handle::open(*anchor, ".", io::confinement::beneath_no_symlinks);
        if (not confined) share_.fail_here(about(root_.string(), confined.error()));
        std::vector<given_file> files;
        for (const std::size_t each : plan.files)
            files.push_back({.from = root_ / here.below[each],
                             .to = remote_path(here.entries[each].path),
                             .bytes = here.entries[each].bytes,
                             .root = follows ? nullptr : &*confined,
                             .below = here.below[each]});
        copy_all(files, [&](const copy_options& how, std::vector<given_file> some) {
            return create_uploader(share_, how, std::move(some));
        });
        if (may_remove(plan))
            for (const std::size_t each : plan.removals)
                remove_remote(there.remote[each]);
        return failures_ == 0;
    }

    bool to_this_machine() {
        remote_tree_list there = list_remote(share_, false);
        name_as_listed_here(there);
        if (not arguments_.only_shows) create_root();
        const local_tree here = list_local_tree(root_, link_policy::skip, mount_policy::keep_out);
        std::error_code unknown;
        if (fs::exists(root_, unknown)) report(here.problems);
        const sync_plan plan =
            plan_sync(there.entries, here.entries, {.removes = arguments_.removes, .ignores_case = false});
        report(plan, false);
        if (arguments_.only_shows) return show(plan, there.entries, here.entries);
        const auto anchor = io::path_handle::open(root_.string());
        if (not anchor) share_.fail_here(about(root_.string(), anchor.error()));
        const io::path_handle confined = confine(*anchor);
        for (const std::size_t each : plan.directories)
            create_local(confined, there.remote[each], there.entries[each].path);
        std::vector<fetched_file> files;
        for (const std::size_t each : plan.files)
            if (const auto below = local_path(there.remote[each], there.entries[each].path))
                files.push_back(
                    {.from = there.remote[each], .to = root_ / *below, .root = &confined, .below = *below});
        copy_all(files, [&](const copy_options& how, std::vector<fetched_file> some) {
            return create_getter(share_, how, std::move(some));
        });
        if (may_remove(plan)) {
            const auto kept = objects_of(confined, there);
            for (const std::size_t each : plan.removals)
                remove_local(confined, here.entries[each], here.below[each], kept);
        }
        return failures_ == 0;
    }

private:
    void report(const std::vector<std::string>& problems) {
        for (const std::string& each : problems)
            print_error(each);
        failures_ += problems.size();
        is_complete_ = is_complete_ and problems.empty();
    }

    void report(const sync_plan& plan, bool is_local) {
        for (const auto& each : plan.skipped) {
            const std::string why = "skipped: " + each.why;
            if (is_local)
                warn((root_ / each.path).string() + ": " + why);
            else
                share_.warn(remote_path(each.path), why);
        }
        failures_ += plan.skipped.size();
        if (not plan.no_removal.empty()) {
            share_.print_error(share_.url().path, plan.no_removal);
            ++failures_;
        }
    }

    bool show(const sync_plan& plan, const std::vector<sync_entry>& source,
              const std::vector<sync_entry>& target) const {
        for (const std::size_t each : plan.directories)
            fmt::print("create {}/\n", terminal_text(source[each].path));
        for (const std::size_t each : plan.files)
            fmt::print("copy {}\n", terminal_text(source[each].path));
        if (may_remove(plan))
            for (const std::size_t each : plan.removals)
                fmt::print("remove {}\n", terminal_text(target[each].path));
        return failures_ == 0;
    }

    template <class File, class Create>
    void copy_all(const std::vector<File>& files, Create create) {
        const std::size_t failed = create(arguments_.how, files)->copy_all(files.size());
        failures_ += failed;
        is_complete_ = is_complete_ and failed == 0 and not share_.is_broken();
    }

    // Only after a complete list and complete copies.
    [[nodiscard]] bool may_remove(const sync_plan& plan) const {
        if (plan.removals.empty()) return false;
        if (is_complete_) return true;
        share_.print_error(share_.url().path,
                           "some files could not be read or copied, so nothing was removed");
        return false;
    }

    // Several names of a server are one name on this machine. The plan compares what the list of
    // this machine has for them.
    static void name_as_listed_here(remote_tree_list& there) {
        for (sync_entry& each : there.entries) {
            const auto path = host_path_below({}, each.path);
            if (path) each.path = vfs::shown_path(path->string());
        }
    }

    // Returns the objects that the names of the source lead to here. A file system that ignores
    // case, or normalises names, lists them under other names than they were given.
    [[nodiscard]] static std::set<object_identity> objects_of(const io::path_handle& root,
                                                              const remote_tree_list& there) {
        std::set<object_identity> kept;
        for (const sync_entry& each : there.entries) {
            const auto path = host_path_below({}, each.path);
            if (not path) continue;
            const auto status = io::status_at(root, path->string());
            if (status) kept.emplace(status->device, status->inode);
        }
        return kept;
    }

    [[nodiscard]] std::string remote_path(const std::string& below) const {
        return joined_path(share_.url().path, below);
    }

    // The other directories are still copied.
    void create_remote(const std::string& path) {
        const auto met = create_if_needed(share_, path);
        if (not met) return;
        if (met->is_of_connection()) share_.fail(path, met->message());
        ++failures_;
        is_complete_ = false;
        share_.print_error(path, met->message());
    }

    void create_parents(const std::string& path) {
        for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
            ensure_directory(share_, path.substr(0, at));
        ensure_directory(share_, path);
    }

    void remove_remote(const remote_entry& entry) {
        const auto met = share_.run(remove_unchanged(share_.tree(), entry));
        if (not met) return;
        ++failures_;
        share_.print_error(entry.path, *met);
    }

    void create_root() {
        std::error_code why;
        fs::create_directories(root_, why);
        if (why) share_.fail_here(root_.string() + ": create directory: " + why.message());
    }

    [[nodiscard]] io::path_handle confine(const io::path_handle& anchor) {
        auto confined = io::path_handle::open(anchor, ".", io::confinement::beneath_one_mount_no_symlinks);
        if (not confined) share_.fail_here(about(root_.string(), confined.error()));
        return std::move(*confined);
    }

    [[nodiscard]] std::optional<std::string> local_path(const remote_entry& entry, const std::string& below) {
        const auto path = host_path_below({}, below);
        if (path) return path->string();
        ++failures_;
        is_complete_ = false;
        share_.print_error(entry.path,
                           "the name is not allowed on this system, because it would leave the "
                           "target directory");
        return std::nullopt;
    }

    void create_local(const io::path_handle& root, const remote_entry& entry, const std::string& below) {
        const auto path = local_path(entry, below);
        if (not path) return;
        const auto made = io::directory_handle::open(root, *path, io::mode::none, io::creation::if_needed);
        if (made) return;
        ++failures_;
        is_complete_ = false;
        print_error(about((root_ / *path).string(), made.error()));
    }

    void remove_local(const io::path_handle& root, const sync_entry& listed, const std::string& below,
                      const std::set<object_identity>& kept) {
        const auto met = remove_unchanged(root, below, listed, kept);
        if (not met) return;
        ++failures_;
        print_error((root_ / below).string() + ": " + *met);
    }

    remote_share& share_;
    const sync_arguments& arguments_;
    fs::path root_;
    std::size_t failures_ = 0;
    bool is_complete_ = true;
};

void run_sync(const sync_arguments& arguments) {
    const bool is_to_share = is_smb_url(arguments.target);
    if (is_to_share == is_smb_url(arguments.source))
        refuse_usage("one of SOURCE and TARGET is a URL, the other a local directory");
    const fs::path root = is_to_share ? arguments.source : arguments.target;
    std::error_code why;
    if (is_to_share and not fs::is_directory(root, why))
        fail(root.string() +
             ": open: " + (why ? why.message() : "is not a directory; use 'sluice put' to copy a file"));
    remote_share share(is_to_share ? arguments.target : arguments.source, arguments.how.remote);
    synchronisation both(share, arguments, root);
    const bool is_same = is_to_share ? both.to_share() : both.to_this_machine();
    if (not is_same) share.fail(share.url().path, "some entries were skipped or failed");
}

}  // namespace

void add_sync(command_syntax app) {
    const auto arguments = std::make_shared<sync_arguments>();
    arguments->how.resumes = true;
    const command_syntax sync =
        app.add_subcommand("sync", "copy changes between a local directory and a share")
            .group("Client")
            .example("sluice sync photos //server/backup/photos")
            .example("sluice sync --delete --dry-run photos //server/backup/photos");
    sync.add_option("SOURCE", arguments->source, "local directory or URL whose contents are copied")
        .required();
    sync.add_option("TARGET", arguments->target, "URL or local directory that gets the same contents")
        .required();
    sync.add_flag("--delete", arguments->removes,
                  "remove files of TARGET that SOURCE does not have, if everything was read and copied");
    sync.add_flag("-n,--dry-run", arguments->only_shows, "only print what would be done");
    sync.add_flag("--checksum", arguments->how.verifies, "read each file again after copying and compare");
    sync.add_option("--links", arguments->links,
                    "symbolic links of a local SOURCE: skip and report, or follow")
        .one_of(std::vector<std::string>{"skip", "follow"})
        .value_name("HOW")
        .shows_default();
    add_progress_options(sync, arguments->how);
    add_remote_options(sync, arguments->how.remote);
    sync.on_call([arguments] { run_sync(*arguments); });
}

}  // namespace sluice::cli

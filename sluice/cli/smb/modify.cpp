// sluice rm, mkdir: modifies directories on an SMB server.

#include "sluice/cli/commands.hpp"
#include "sluice/cli/smb/remote_tree.hpp"

namespace sluice::cli {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

struct change_arguments {
    remote_options remote;
    std::string url;
    bool is_recursive = false;
    bool makes_parents = false;
};

io::task<void> remove_one(remote_share& share, const remote_entry& entry, std::size_t& failures) noexcept {
    io::task<outcome<void>> removing = share.tree().remove(entry.path, is_directory(entry.status));
    const auto removed = co_await std::move(removing);
    if (removed) co_return;
    ++failures;
    share.print_error(entry.path, removed.error().message());
}

void run_rm(const change_arguments& arguments) {
    remote_share share(arguments.url, arguments.remote);
    const std::string& path = share.url().path;
    if (path.empty()) share.fail(path, "the root of a share cannot be removed");
    std::vector<remote_entry> entries;
    const auto status = share.run(status_of_object(share.tree(), path));
    if (status and is_directory(*status) and not is_link(*status) and not arguments.is_recursive)
        share.fail(path, "is a directory; use -r to remove directories and their contents");
    if (status) {
        entries = entries_of(share, path, true, link_contents::hidden);  // a link, not its target
    } else if (status.error().status() == nt_status::stopped_on_symlink) {
        entries.push_back({.path = path});
    } else {
        share.fail(path, status.error().message());
    }
    std::vector<remote_entry> files;
    std::vector<remote_entry> directories;
    for (remote_entry& each : entries)
        (is_directory(each.status) ? directories : files).push_back(std::move(each));
    std::size_t failures = 0;
    share.run(for_each_at_once(share, files.size(),
                               [&](std::size_t i) { return remove_one(share, files[i], failures); }));
    // The entries of a directory are removed before it.
    for (std::size_t i = directories.size(); i-- != 0 and not share.is_broken();)
        share.run(remove_one(share, directories[i], failures));
    if (failures != 0 or share.is_broken()) share.fail(path, "some entries were not removed");
}

void run_mkdir(const change_arguments& arguments) {
    remote_share share(arguments.url, arguments.remote);
    const std::string& path = share.url().path;
    for (std::size_t at = path.find('/'); arguments.makes_parents; at = path.find('/', at + 1)) {
        const std::string directory = path.substr(0, at);
        const auto made = share.run(share.tree().create_directory(directory));
        if (not made and made.error().status() != nt_status::object_name_collision)
            share.fail(directory, made.error().message());
        if (at == std::string::npos) return;
    }
    const auto made = share.run(share.tree().create_directory(path));
    if (not made) share.fail(path, made.error().message());
}

}  // namespace

void add_rm(command_syntax app) {
    const auto arguments = std::make_shared<change_arguments>();
    const command_syntax rm = app.add_subcommand("rm", "remove files from an SMB server")
                                  .group("Client")
                                  .example("sluice rm -r smb://alice@server/backup/2019");
    add_remote_url(rm, arguments->url);
    rm.add_flag("-r,--recursive", arguments->is_recursive, "remove directories and their contents");
    add_remote_options(rm, arguments->remote);
    rm.on_call([arguments] { run_rm(*arguments); });
}

void add_mkdir(command_syntax app) {
    const auto arguments = std::make_shared<change_arguments>();
    const command_syntax mkdir = app.add_subcommand("mkdir", "create a directory on an SMB server")
                                     .group("Client")
                                     .example("sluice mkdir -p smb://alice@server/backup/2026/11");
    add_remote_url(mkdir, arguments->url);
    mkdir.add_flag("-p,--parents", arguments->makes_parents,
                   "create missing parents; succeed if the directory exists");
    add_remote_options(mkdir, arguments->remote);
    mkdir.on_call([arguments] { run_mkdir(*arguments); });
}

}  // namespace sluice::cli

// sluice get: copies files and directories from an SMB server.

#include <filesystem>
#include <set>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/copy_commands.hpp"
#include "sluice/cli/smb/getter.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

struct get_arguments {
    copy_options how;
    std::string url;
    std::string target;
};

constexpr const char* escaping_name =
    "the name is not allowed on this system, because it would leave the target directory";

[[nodiscard]] fs::path path_below(remote_share& share, const std::string& path, const fs::path& target,
                                  const std::string& below) {
    auto made = host_path_below(target, below);
    if (not made) share.fail(path, escaping_name);
    return *std::move(made);
}

}  // namespace

void copy_from_share(const std::string& url, const std::string& target_name, const copy_options& how) {
    remote_share share(url, how.remote);
    const std::string& path = share.url().path;
    const std::vector<remote_entry> entries = entries_of(share, path, how.is_recursive);
    const std::string own_name = path.empty() ? share.url().share : last_name_of(path);
    fs::path target = target_name.empty() ? fs::path(".") : fs::path(target_name);
    const bool is_tree = is_directory(entries.front().status);
    std::error_code unknown;
    if (fs::is_directory(target, unknown)) target = path_below(share, path, target, own_name);
    std::vector<fetched_file> files;
    std::set<fs::path> names_taken;
    for (const remote_entry& each : entries) {
        const std::string below = is_tree and each.path.size() > path.size()
                                      ? each.path.substr(path.empty() ? 0 : path.size() + 1)
                                      : std::string();
        const fs::path to = path_below(share, each.path, target, below);
        std::error_code why;
        if (is_link(each.status)) {
            share.warn(each.path, "skipped: a link that the server does not follow");
        } else if (not below.empty() and partial_names::is_one(last_name_of(each.path))) {
            share.warn(each.path, "skipped: the partial file of an interrupted copy");
        } else if (not names_taken.insert(to).second) {
            // Otherwise one of the two would replace the other.
            share.fail(each.path,
                       "another name in the same directory is the same name on this system; "
                       "rename one of the two on the server");
        } else if (is_directory(each.status)) {
            fs::create_directories(to, why);
            if (why) share.fail_here(to.string() + ": create directory: " + why.message());
        } else {
            files.push_back({.from = each, .to = to});
        }
    }
    const std::size_t count = files.size();
    create_getter(share, how, std::move(files))->run(count);
}

void add_get(command_syntax app) {
    const auto arguments = std::make_shared<get_arguments>();
    const command_syntax get = app.add_subcommand("get", "copy files from an SMB server")
                                   .group("Client")
                                   .example("sluice get smb://alice@server/docs/report.pdf")
                                   .example("sluice get -r --resume smb://alice@server/photos/2026");
    add_remote_url(get, arguments->url);
    get.add_option("TARGET", arguments->target, "local file or directory [default: current directory]");
    get.add_flag("-r,--recursive", arguments->how.is_recursive, "copy directories recursively");
    get.add_flag("--resume", arguments->how.resumes, "skip files that are complete; continue partial ones");
    get.add_flag("--checksum", arguments->how.verifies, "read each file again after copying and compare");
    add_progress_options(get, arguments->how);
    add_remote_options(get, arguments->how.remote);
    get.on_call([arguments] { copy_from_share(arguments->url, arguments->target, arguments->how); });
}

}  // namespace sluice::cli

// sluice put: copies files and directories to an SMB server.

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/copy_commands.hpp"
#include "sluice/cli/smb/uploader.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

struct put_arguments {
    copy_options how;
    std::vector<std::string> operands;
    std::string links = "skip";
};

[[nodiscard]] std::string shown(const std::string& name) {
    std::string storage;
    return std::string(vfs::shown_name(name, storage));
}

// Collects the files to send for one operand.
class gathering {
public:
    gathering(remote_share& share, const copy_options& how) : share_(share), how_(how) {}

    void add(const fs::path& from, const std::string& to) {
        std::error_code why;
        const fs::file_status status = fs::status(from, why);
        if (why) share_.fail_here(from.string() + ": open: " + why.message());
        if (not fs::is_directory(status)) return add_file(from, to);
        add_directory(from, to);
        confined_ = nullptr;
    }

    std::vector<given_file> files;
    std::vector<given_file> later_files;  // copied after `files`, which they must not replace

private:
    void add_file(const fs::path& from, const std::string& to) {
        std::error_code why;
        const std::uint64_t bytes = fs::file_size(from, why);
        if (why) share_.fail_here(from.string() + ": get size: " + why.message());
        // Most servers ignore case: the second of two such names must not replace the first.
        const bool is_first = names_taken_.insert(fold(to)).second;
        given_file made{.from = from, .to = to, .bytes = bytes, .may_replace = is_first};
        if (confined_ != nullptr) {
            made.root = confined_;
            made.below = from.lexically_relative(top_).string();
        }
        (is_first ? files : later_files).push_back(std::move(made));
    }

    // A link that appears in the directory after its list was made is not followed either.
    void confine(const fs::path& directory) {
        if (how_.follows_links) return;
        const auto anchor = io::path_handle::open(directory.string());
        if (not anchor) share_.fail_here(about(directory.string(), anchor.error()));
        auto confined = io::path_handle::open(*anchor, ".", io::confinement::beneath_no_symlinks);
        if (not confined) share_.fail_here(about(directory.string(), confined.error()));
        roots_.push_back(std::move(*confined));
        confined_ = &roots_.back();
        top_ = directory;
    }

    void add_directory(const fs::path& from, const std::string& to) {
        if (not how_.is_recursive)
            share_.fail_here(from.string() + ": is a directory; use -r to copy directories recursively");
        std::error_code why;
        const fs::path real = fs::canonical(from, why);
        if (why) share_.fail_here(from.string() + ": open: " + why.message());
        if (std::ranges::find(above_, real) != above_.end())
            return warn(from.string() + ": skipped: a link leads back to a directory above it");
        ensure_directory(share_, to);
        above_.push_back(real);
        std::vector<fs::path> found;
        for (fs::directory_iterator each(from, why), end; not why and each != end; each.increment(why))
            found.push_back(each->path());
        if (not why and above_.size() == 1) confine(from);
        std::ranges::sort(found);  // the order of the messages
        for (const fs::path& each : found)
            add_entry(each, to);
        above_.pop_back();
        if (why) share_.fail_here(from.string() + ": list: " + why.message());
    }

    void add_entry(const fs::path& from, const std::string& into) {
        const std::string name = from.filename().string();
        const std::string to = joined_path(into, shown(name));
        std::error_code unknown;
        fs::file_status status = fs::symlink_status(from, unknown);
        if (how_.follows_links and fs::is_symlink(status)) status = fs::status(from, unknown);
        if (fs::is_directory(status))
            add_directory(from, to);
        else if (not fs::is_regular_file(status))
            warn(from.string() + ": skipped: neither a file nor a directory");
        else if (partial_names::is_one(name))
            warn(from.string() + ": skipped: the partial file of an interrupted copy");
        else
            add_file(from, to);
    }

    remote_share& share_;
    std::set<std::string> names_taken_;
    const copy_options& how_;
    std::vector<fs::path> above_;  // without links
    std::deque<io::path_handle> roots_;
    const io::path_handle* confined_ = nullptr;  // for the files below `top_`
    fs::path top_;
};

[[nodiscard]] std::string own_name_of(const std::string& source) {
    const fs::path normal = fs::absolute(source).lexically_normal();
    return shown((normal.has_filename() ? normal : normal.parent_path()).filename().string());
}

void put_all(remote_share& share, const copy_options& how, std::vector<given_file> files) {
    const std::size_t count = files.size();
    create_uploader(share, how, std::move(files))->run(count);
}

}  // namespace

void copy_to_share(const std::vector<std::string>& operands, const copy_options& how) {
    remote_share share(operands.back(), how.remote);
    const std::string& path = share.url().path;
    const auto there = share.run(share.tree().status(path));
    if (not there and there.error().is_of_connection()) share.fail(path, there.error().message());
    const bool is_into = there and is_directory(*there);
    if (operands.size() > 2 and not is_into)
        share.fail(path, "not a directory; several sources require a directory as the target");
    gathering gathered(share, how);
    for (std::size_t i = 0; i + 1 != operands.size(); ++i) {
        const std::string& source = operands[i];
        gathered.add(source, is_into ? joined_path(path, own_name_of(source)) : path);
    }
    put_all(share, how, std::move(gathered.files));
    if (not gathered.later_files.empty()) put_all(share, how, std::move(gathered.later_files));
}

void add_put(command_syntax app) {
    const auto arguments = std::make_shared<put_arguments>();
    const command_syntax put = app.add_subcommand("put", "copy files to an SMB server")
                                   .group("Client")
                                   .example("sluice put --checksum *.iso smb://alice@server/images/")
                                   .example("sluice put -r project smb://alice@server/backup/");
    put.add_option("SOURCE... URL", arguments->operands,
                   "local files or directories, and the target smb://[[DOMAIN;]USER@]HOST[:PORT]/SHARE/PATH")
        .required()
        .expected(2, -1);
    put.add_flag("-r,--recursive", arguments->how.is_recursive, "copy directories recursively");
    put.add_flag("--resume", arguments->how.resumes, "skip files that are complete; continue partial ones");
    put.add_flag("--checksum", arguments->how.verifies, "read each file back after copying and compare");
    put.add_option("--links", arguments->links,
                   "symbolic links below a directory: skip and report, or follow")
        .one_of(std::vector<std::string>{"skip", "follow"})
        .value_name("HOW")
        .shows_default();
    add_progress_options(put, arguments->how);
    add_remote_options(put, arguments->how.remote);
    put.on_call([arguments] {
        arguments->how.follows_links = arguments->links == "follow";
        copy_to_share(arguments->operands, arguments->how);
    });
}

}  // namespace sluice::cli

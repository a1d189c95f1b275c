// sluice get: copies files and directories from an SMB server.

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/file_copier.hpp"
#include "sluice/cli/smb/partial_file.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

struct get_arguments {
    copy_options how;
    std::string url;
    std::string target;
};

struct fetched_file {
    remote_entry from;
    fs::path to;
};

class getter final : public file_copier {
public:
    getter(remote_share& share, const copy_options& how, std::vector<fetched_file> files,
           std::uint64_t total_bytes)
        : file_copier(share, how, total_bytes), files_(std::move(files)) {
        std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_;
    }

private:
    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].from.path;
    }

    [[nodiscard]] bool is_there_already(const fetched_file& file) const {
        const auto there = io::status_at({}, file.to.string());
        return there and there->size_bytes == file.from.status.end_of_file_bytes and
               there->modified == time_point_of(file.from.status.last_write_time);
    }

    // A complete file replaces the target by renaming, which must not remove a device or a pipe.
    [[nodiscard]] static copy_error why_not(const fs::path& to) {
        std::error_code why;
        const fs::file_status there = fs::status(to, why);
        if (not fs::exists(there) or fs::is_regular_file(there)) return std::nullopt;
        return to.string() + ": not a regular file, so it is not replaced; use 'sluice cat' to write to it";
    }

    // Returns the version of a file that is long enough to be resumed. The server's port may differ
    // next time.
    [[nodiscard]] io::task<outcome<partial_names::record>> version_of(const fetched_file& file,
                                                                      remote_file& remote) noexcept {
        io::task<outcome<std::uint64_t>> asking = remote.co_file_number();
        const auto number = co_await std::move(asking);
        if (not number and number.error().is_of_connection()) co_return failed(number.error());
        const file_status& status = remote.status();
        // After a crash of this machine, blocks of the partial file that were not written may be
        // zeros.
        const std::string place =
            boot_ + '/' + share_.url().host + '/' + joined_path(share_.url().share, file.from.path);
        co_return names_.record_of({.place = place,
                                    .bytes = status.end_of_file_bytes,
                                    .created = status.creation_time.ticks,
                                    .written = status.last_write_time.ticks,
                                    .changed = status.change_time.ticks,
                                    .file_number = number.value_or(0)});
    }

    [[nodiscard]] io::task<copy_error> copy(std::size_t number) noexcept override {
        const fetched_file& file = files_[number];
        if (const copy_error refused = why_not(file.to)) co_return refused;
        if (how_.resumes and is_there_already(file)) {
            progress_.skip(file.from.status.end_of_file_bytes);
            co_return std::nullopt;
        }
        const open_options how{.shares = smb::wire::share_access::read | smb::wire::share_access::write |
                                         smb::wire::share_access::remove,
                               .options = smb::wire::create_options::non_directory_file};
        io::task<outcome<not_null_ptr<remote_file>>> opening = share_.tree().open(file.from.path, how);
        const auto remote = co_await std::move(opening);
        if (not remote) co_return remote.error().message();
        const auto directory = io::path_handle::open(directory_of(file.to));
        std::optional<partial_file> part;
        copy_error met;
        if (directory) {
            io::task<copy_error> fetching = fetch(file, **remote, *directory, part);
            met = co_await std::move(fetching);
        } else {
            met = reason_of(directory.error());
        }
        io::task<outcome<file_status>> close_task = (*remote)->co_close();
        const auto closed = co_await std::move(close_task);
        if (met) co_return met;
        if (not closed) co_return closed.error().message();
        io::task<copy_error> checking = check_version(file.from.path, (*remote)->status(), *closed);
        if (auto changed = co_await std::move(checking)) co_return changed;
        io::task<copy_error> finishing = finish(*part, (*remote)->status());
        co_return co_await std::move(finishing);
    }

    // Files that cannot be resumed have the usual name as well: the next copy to the target removes
    // the partial file of a killed client. The name is a new one if a file of another origin has
    // the usual one.
    [[nodiscard]] result<partial_file> open_part(
        const fetched_file& file, const io::path_handle& directory,
        const std::optional<partial_names::record>& version) noexcept {
        const std::string target = file.to.filename().string();
        const std::string path = fs::absolute(file.to).lexically_normal().string();
        auto usual = partial_file::open(
            {.directory = directory, .name = names_.name_of(path), .target = target}, version, how_.resumes);
        if (usual or usual.error() != std::errc::file_exists) return usual;
        return partial_file::open({.directory = directory, .name = names_.fresh_name(), .target = target},
                                  std::nullopt, false);
    }

    // Receives the whole file into `part`.
    io::task<copy_error> fetch(const fetched_file& file, remote_file& remote,
                               const io::path_handle& directory, std::optional<partial_file>& part) noexcept {
        const std::uint64_t size = remote.status().end_of_file_bytes;
        std::optional<partial_names::record> version;
        // Without a change time, as on FAT, two versions cannot be distinguished.
        if (size >= resumable_bytes_min and remote.status().change_time != smb::wire::filetime{}) {
            io::task<outcome<partial_names::record>> asking = version_of(file, remote);
            const auto answered = co_await std::move(asking);
            if (not answered) co_return answered.error().message();
            version = *answered;
        }
        auto opened = open_part(file, directory, version);
        if (not opened) co_return about(file.to.string(), opened.error());
        part.emplace(*std::move(opened));
        progress_.name(file.from.path);
        io::task<transferred<std::uint64_t>> receiving = receive(remote, *part, size);
        const auto end = co_await std::move(receiving);
        if (not end) {
            if (how_.resumes or end.error().is_of_connection()) part->keep();
            co_return message_of(end.error());
        }
        if (*end != size)
            co_return fmt::format(
                "the file ended after {} of {} bytes: it was changed during the copy; copy it again", *end,
                size);
        if (how_.verifies) {
            io::task<copy_error> comparing = compare(remote, part->file(), 0, size);
            if (auto difference = co_await std::move(comparing)) co_return difference;
        }
        co_return std::nullopt;
    }

    io::task<transferred<std::uint64_t>> receive(remote_file& remote, partial_file& part,
                                                 std::uint64_t size) noexcept {
        if (part.bytes_before() != 0) {
            io::task<transferred<bool>> proving =
                has_same_tail(remote, part.file(), part.bytes_before(), size);
            const auto is_same = co_await std::move(proving);
            if (not is_same) {
                co_return std::unexpected(is_same.error());
            }
            if (not*is_same)
                if (const auto emptied = part.start_over(); not emptied)
                    co_return std::unexpected(transfer_error{.remote = {}, .local = emptied.error()});
        }
        progress_.skip(part.bytes_before());
        const byte_taker take = [&](bytes_view bytes, std::uint64_t offset) -> result<void> {
            // A full file system accepts a part first; the next write reports the reason.
            for (std::span<const std::byte> rest = bytes.span(); not rest.empty();) {
                const auto wrote = part.file().write(io::io_request<io::const_bytes_type>{rest, offset});
                if (not wrote) return failure(wrote.error());
                if (wrote->empty()) return failure({EIO, "write"});
                rest = rest.subspan(wrote->size());
                offset += wrote->size();
            }
            progress_.add(bytes.size());
            return {};
        };
        io::task<transferred<std::uint64_t>> downloading = download(remote, part.bytes_before(), size, take);
        co_return co_await std::move(downloading);
    }

    // The data is on disk before the name refers to it.
    io::task<copy_error> finish(partial_file& part, const file_status& status) noexcept {
        if (const auto attached = part.file().set_multiplexer(&share_.loop()); not attached)
            co_return reason_of(attached.error());
        const auto durable = co_await io::co_barrier(part.file(), io::barrier_kind::wait_data_only);
        if (not durable) co_return reason_of(durable.error());
        // Two names that this file system does not distinguish: the second would replace the first.
        const auto existing = part.target_status();
        if (existing and finished_.contains({existing->device, existing->inode}))
            co_return "another file of this copy has the same name on this system; rename one of the two";
        const auto finished = part.finish(time_point_of(status.last_write_time));
        if (not finished) co_return reason_of(finished.error());
        if (const auto named = part.target_status(); named) finished_.emplace(named->device, named->inode);
        co_return std::nullopt;
    }

    [[nodiscard]] static std::string directory_of(const fs::path& file) {
        const fs::path parent = file.parent_path();
        return parent.empty() ? std::string(".") : parent.string();
    }

    std::vector<fetched_file> files_;
    std::string boot_;  // boot id of this machine
    std::set<std::pair<std::uint64_t, std::uint64_t>>
        finished_;  // device and inode of the files of this copy
};

// On this system a backslash is an ordinary character, but a mapped dot must not yield a name that
// leads elsewhere.
[[nodiscard]] bool is_host_name(const std::string& name) noexcept {
    return not name.empty() and name != "." and name != ".." and not name.contains('/') and
           not name.contains('\0');
}

// Returns the path on the host of `below`, a path below `target`. Fails for the object at `path`.
[[nodiscard]] fs::path host_path_below(remote_share& share, const std::string& path, const fs::path& target,
                                       const std::string& below) {
    fs::path made = target;
    for (std::size_t at = 0; at < below.size();) {
        const std::size_t slash = std::min(below.find('/', at), below.size());
        std::string storage;
        const std::string name(vfs::host_name(below.substr(at, slash - at), storage));
        if (not is_host_name(name))
            share.fail(path,
                       "the name is not allowed on this system, because it would leave the target directory");
        made /= name;
        at = slash + 1;
    }
    return made;
}

[[nodiscard]] std::string last_name_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

void run_get(const get_arguments& arguments) {
    remote_share share(arguments.url, arguments.how.remote);
    const std::string& path = share.url().path;
    const std::vector<remote_entry> entries = entries_of(share, path, arguments.how.is_recursive);
    const std::string own_name = path.empty() ? share.url().share : last_name_of(path);
    fs::path target = arguments.target.empty() ? fs::path(".") : fs::path(arguments.target);
    const bool is_tree = is_directory(entries.front().status);
    std::error_code unknown;
    if (fs::is_directory(target, unknown)) target = host_path_below(share, path, target, own_name);
    std::vector<fetched_file> files;
    std::set<fs::path> names_taken;
    std::uint64_t total = 0;
    for (const remote_entry& each : entries) {
        const std::string below = is_tree and each.path.size() > path.size()
                                      ? each.path.substr(path.empty() ? 0 : path.size() + 1)
                                      : std::string();
        const fs::path to = host_path_below(share, each.path, target, below);
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
            total += each.status.end_of_file_bytes;
        }
    }
    const std::size_t count = files.size();
    getter(share, arguments.how, std::move(files), total).run(count);
}

}  // namespace

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
    get.on_call([arguments] { run_get(*arguments); });
}

}  // namespace sluice::cli

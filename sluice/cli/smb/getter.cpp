#include "sluice/cli/smb/getter.hpp"

#include <fmt/core.h>

#include <fstream>
#include <set>

#include "sluice/cli/message.hpp"
#include "sluice/cli/smb/sync_plan.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/host/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

class getter final : public file_copier {
public:
    getter(remote_share& share, const copy_options& how, std::vector<fetched_file> files)
        : file_copier(share, how, total_of(files)), files_(std::move(files)) {
        std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_;
    }

private:
    [[nodiscard]] static std::uint64_t total_of(const std::vector<fetched_file>& files) noexcept {
        std::uint64_t bytes = 0;
        for (const fetched_file& each : files)
            bytes += each.from.status.end_of_file_bytes;
        return bytes;
    }

    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].from.path;
    }

    [[nodiscard]] bool is_there_already(const fetched_file& file) const {
        const auto there = io::status_at({}, file.to.string());
        return there and there->size_bytes == file.from.status.end_of_file_bytes and
               is_same_time(smb::wire::filetime_of(there->modified).ticks,
                            file.from.status.last_write_time.ticks);
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
        const auto directory = directory_of(file);
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

    [[nodiscard]] static result<io::path_handle> directory_of(const fetched_file& file) noexcept {
        if (file.root != nullptr) {
            const std::size_t slash = file.below.rfind('/');
            return io::path_handle::open(
                *file.root, slash == std::string::npos ? std::string(".") : file.below.substr(0, slash),
                io::confinement::beneath_no_symlinks);
        }
        const fs::path parent = file.to.parent_path();
        return io::path_handle::open(parent.empty() ? std::string(".") : parent.string());
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

}  // namespace

std::optional<fs::path> host_path_below(const fs::path& target, const std::string& below) {
    fs::path made = target;
    for (std::size_t at = 0; at < below.size();) {
        const std::size_t slash = std::min(below.find('/', at), below.size());
        std::string storage;
        const std::string name(vfs::host_name(below.substr(at, slash - at), storage));
        if (not is_host_name(name)) return std::nullopt;
        made /= name;
        at = slash + 1;
    }
    return made;
}

std::string last_name_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::unique_ptr<file_copier> create_getter(remote_share& share, const copy_options& how,
                                           std::vector<fetched_file> files) {
    return std::make_unique<getter>(share, how, std::move(files));
}

}  // namespace sluice::cli

#include "sluice/vfs/host/snapshot_edits.hpp"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/vfs/host/host_snapshots.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t zfs_magic = 0x2fc1'2fc1;
constexpr ino_t subvolume_root_inode = 256;  // BTRFS_FIRST_FREE_OBJECTID

[[nodiscard]] std::string last_problem(const std::string& path, const char* operation) {
    return path + ": " + operation + ": " + std::strerror(errno);
}

[[nodiscard]] io::handle open_directory(const std::string& path, int base = AT_FDCWD) noexcept {
    return io::handle({.descriptor = ::openat(base, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                       .kind = io::handle_kind::directory});
}

enum class snapshot_support : std::uint8_t { none, btrfs, zfs };

[[nodiscard]] snapshot_support support_of(const io::handle& directory) noexcept {
    struct statfs found{};
    if (::fstatfs(directory.descriptor(), &found) != 0) return snapshot_support::none;
    const auto magic = static_cast<std::uint64_t>(found.f_type) & 0xffff'ffffU;
    if (magic == BTRFS_SUPER_MAGIC) return snapshot_support::btrfs;
    return magic == zfs_magic ? snapshot_support::zfs : snapshot_support::none;
}

[[nodiscard]] bool is_subvolume(const io::handle& directory) noexcept {
    struct stat found{};
    return ::fstat(directory.descriptor(), &found) == 0 and found.st_ino == subvolume_root_inode;
}

// The directory of which a snapshot is made: `root` without the subpath of the pattern.
[[nodiscard]] std::expected<std::string, std::string> source_of(const std::string& root,
                                                                const snapshot_pattern& pattern) {
    std::error_code why;
    std::string whole = fs::canonical(root, why).string();
    if (why) return std::unexpected(root + ": " + why.message());
    if (pattern.subpath().empty()) return whole;
    const std::string end = '/' + pattern.subpath();
    if (whole.ends_with(end) and whole.size() > end.size()) return whole.substr(0, whole.size() - end.size());
    return std::unexpected(root + ": the pattern has '" + pattern.subpath() +
                           "' after the time, so the directory must end with it");
}

struct opened_places {
    io::handle source;
    io::handle directory;  // that contains the snapshots
    std::string source_path;
    std::string directory_path;
};

[[nodiscard]] std::string no_support(const std::string& path) {
    return path +
           ": the file system has no snapshots that this command can change; use btrfs or ZFS, or another "
           "program whose snapshots are directories";
}

[[nodiscard]] std::expected<opened_places, std::string> open_places(const std::string& root,
                                                                    const snapshot_pattern& pattern) {
    auto source = source_of(root, pattern);
    if (not source) return std::unexpected(source.error());
    opened_places places{.source = open_directory(*source),
                         .directory = {},
                         .source_path = *source,
                         .directory_path = directory_of_snapshots(root, pattern)};
    if (not places.source.is_valid()) return std::unexpected(last_problem(places.source_path, "open"));
    if (support_of(places.source) == snapshot_support::none) return std::unexpected(no_support(*source));
    const auto found = open_directory_of_snapshots(root, pattern);
    if (not found) {
        const bool is_missing = found.error() == std::errc::no_such_file_or_directory;
        return std::unexpected(
            places.directory_path + ": " + found.error().message() +
            (is_missing ? "; create the directory first" : std::string(remedy_for_snapshots(found.error()))));
    }
    places.directory = open_directory(".", found->descriptor());
    if (places.directory.is_valid()) return places;
    return std::unexpected(last_problem(places.directory_path, "open"));
}

[[nodiscard]] std::string snapshot_on_btrfs(const opened_places& places, const std::string& name) {
    if (not is_subvolume(places.source))
        return places.source_path +
               ": is not the root of a btrfs subvolume, and only a subvolume can have snapshots; create one "
               "with 'btrfs subvolume create', and move the files into it";
    btrfs_ioctl_vol_args_v2 asked{};
    asked.fd = places.source.descriptor();
    asked.flags = BTRFS_SUBVOL_RDONLY;
    ENSURE(name.size() < sizeof asked.name, "the name of a snapshot has at most 255 bytes");
    std::memcpy(asked.name, name.c_str(), name.size());
    if (::ioctl(places.directory.descriptor(), BTRFS_IOC_SNAP_CREATE_V2, &asked) == 0) return {};
    const char* const remedy =
        errno == EXDEV or errno == ENOTTY ? "; the pattern must name a directory of the same btrfs" : "";
    return last_problem(places.directory_path + '/' + name, "create snapshot") + remedy;
}

// Directories elsewhere are ordinary ones.
[[nodiscard]] std::string not_on_zfs(const opened_places& places) {
    if (places.directory_path.ends_with(".zfs/snapshot")) return {};
    return places.directory_path +
           ": ZFS has its snapshots in .zfs/snapshot; use a pattern as in .zfs/snapshot/%Y-%m-%d_%H%M";
}

[[nodiscard]] std::string snapshot_on_zfs(const opened_places& places, const std::string& name) {
    if (std::string problem = not_on_zfs(places); not problem.empty()) return problem;
    if (::mkdirat(places.directory.descriptor(), name.c_str(), 0755) == 0) return {};
    return last_problem(places.directory_path + '/' + name, "create snapshot") +
           "; 'zfs allow' and the module parameter zfs_admin_snapshot permit it";
}

[[nodiscard]] std::string deletion_on_btrfs(const opened_places& places, const std::string& name) {
    const std::string path = places.directory_path + '/' + name;
    const io::handle found({.descriptor = ::openat(places.directory.descriptor(), name.c_str(),
                                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            .kind = io::handle_kind::directory});
    if (not found.is_valid()) return last_problem(path, "open");
    std::uint64_t flags = 0;
    const bool is_snapshot = is_subvolume(found) and
                             ::ioctl(found.descriptor(), BTRFS_IOC_SUBVOL_GETFLAGS, &flags) == 0 and
                             (flags & BTRFS_SUBVOL_RDONLY) != 0;
    if (not is_snapshot)
        return path + ": is not a read-only snapshot; delete other directories with rm or btrfs";
    btrfs_ioctl_vol_args asked{};
    ENSURE(name.size() < sizeof asked.name, "the name of a snapshot has at most 255 bytes");
    std::memcpy(asked.name, name.c_str(), name.size());
    if (::ioctl(places.directory.descriptor(), BTRFS_IOC_SNAP_DESTROY, &asked) == 0) return {};
    const char* const remedy = errno == EPERM ? "; run it as root, or mount with user_subvol_rm_allowed" : "";
    return last_problem(path, "delete snapshot") + remedy;
}

[[nodiscard]] std::string deletion_on_zfs(const opened_places& places, const std::string& name) {
    if (std::string problem = not_on_zfs(places); not problem.empty()) return problem;
    if (::unlinkat(places.directory.descriptor(), name.c_str(), AT_REMOVEDIR) == 0) return {};
    return last_problem(places.directory_path + '/' + name, "delete snapshot");
}

}  // namespace

std::expected<std::string, std::string> create_snapshot(const std::string& root,
                                                        const snapshot_pattern& pattern, snapshot_time when) {
    const auto name = pattern.name_of(pattern.round(when));
    if (not name) return std::unexpected(root + ": the time is not from 1970 to 9999");
    const auto places = open_places(root, pattern);
    if (not places) return std::unexpected(places.error());
    std::string problem;
    switch (support_of(places->source)) {
        case snapshot_support::none:
            problem = no_support(places->source_path);
            break;
        case snapshot_support::btrfs:
            problem = snapshot_on_btrfs(*places, *name);
            break;
        case snapshot_support::zfs:
            problem = snapshot_on_zfs(*places, *name);
            break;
    }
    if (not problem.empty()) return std::unexpected(std::move(problem));
    return places->directory_path + '/' + *name;
}

std::expected<void, std::string> delete_snapshot(const std::string& root, const snapshot_pattern& pattern,
                                                 const std::string& name) {
    if (not pattern.time_of(name)) return std::unexpected(name + ": the name does not match the pattern");
    ENSURE(name.find('/') == std::string::npos, "a name that matches is one component");
    const auto places = open_places(root, pattern);
    if (not places) return std::unexpected(places.error());
    std::string problem;
    switch (support_of(places->directory)) {
        case snapshot_support::none:
            problem = no_support(places->directory_path);
            break;
        case snapshot_support::btrfs:
            problem = deletion_on_btrfs(*places, name);
            break;
        case snapshot_support::zfs:
            problem = deletion_on_zfs(*places, name);
            break;
    }
    if (not problem.empty()) return std::unexpected(std::move(problem));
    return {};
}

}  // namespace sluice::vfs

#include "sluice/cli/doctor/local/file_system_facts.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sluice::cli::doctor {
namespace {

constexpr const char* check = "share";
constexpr std::uint64_t gib = 1U << 30;

struct known_type {
    std::uint64_t number;
    const char* name;
};
// statfs(2) and linux/magic.h.
constexpr std::array known_types{
    known_type{.number = 0xef53, .name = "ext4"},      known_type{.number = 0x58465342, .name = "xfs"},
    known_type{.number = 0x9123683e, .name = "btrfs"}, known_type{.number = 0x2fc12fc1, .name = "zfs"},
    known_type{.number = 0x01021994, .name = "tmpfs"}, known_type{.number = 0x794c7630, .name = "overlayfs"},
    known_type{.number = 0x6969, .name = "nfs"},       known_type{.number = 0xff534d42, .name = "cifs"},
    known_type{.number = 0xfe534d42, .name = "smb2"},  known_type{.number = 0x65735546, .name = "fuse"},
    known_type{.number = 0x4d44, .name = "vfat"},      known_type{.number = 0x2011bab0, .name = "exfat"},
    known_type{.number = 0x7366746e, .name = "ntfs3"}, known_type{.number = 0xf2f52010, .name = "f2fs"},
    known_type{.number = 0x9660, .name = "iso9660"},   known_type{.number = 0x73717368, .name = "squashfs"},
    known_type{.number = 0x01021997, .name = "9p"},    known_type{.number = 0x00c36400, .name = "ceph"},
};

[[nodiscard]] bool is_of_network(const std::string& type) {
    constexpr std::array types{"nfs", "cifs", "smb2", "fuse", "9p", "ceph"};
    return std::ranges::find(types, type) != types.end();
}

[[nodiscard]] bool lacks(const std::string& path, const char* attribute) noexcept {
    return ::getxattr(path.c_str(), attribute, nullptr, 0) < 0 and errno == ENOTSUP;
}

[[nodiscard]] bool folds_case(const std::string& path) noexcept {
    constexpr int casefold = 0x40000000;  // FS_CASEFOLD_FL
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    int flags = 0;
    const bool is_known = ::ioctl(descriptor, FS_IOC_GETFLAGS, &flags) == 0;
    ::close(descriptor);
    return is_known and (flags & casefold) != 0;
}

[[nodiscard]] finding made(severity level, std::string what, std::string evidence, std::string remedy) {
    return {.level = level,
            .check = check,
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = std::move(remedy)};
}

[[nodiscard]] std::string size_text(std::uint64_t bytes) {
    return bytes >= gib ? fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(gib))
                        : fmt::format("{} MiB", bytes >> 20);
}

void judge_space(std::vector<finding>& found, const std::string& path, const file_system_facts& seen) {
    const std::string space =
        fmt::format("{} of {} free", size_text(seen.free_bytes), size_text(seen.total_bytes));
    const std::string remedy = fmt::format(
        "du -xh --max-depth=1 {} | sort -h; remove files, or enlarge the file system", shell_word(path));
    if (seen.total_bytes != 0 and seen.free_bytes == 0)
        found.push_back(
            made(severity::problem, fmt::format("the file system of '{}' is full", path), space, remedy));
    else if (seen.free_bytes < seen.total_bytes / 20 and seen.free_bytes < 10 * gib)
        found.push_back(made(severity::warning, fmt::format("the file system of '{}' is nearly full", path),
                             space, remedy));
    if (seen.total_inodes != 0 and seen.free_inodes < seen.total_inodes / 100)
        found.push_back(made(
            seen.free_inodes == 0 ? severity::problem : severity::warning,
            fmt::format("the file system of '{}' has hardly room for more files", path),
            fmt::format("{} of {} inodes free", seen.free_inodes, seen.total_inodes),
            fmt::format("du -x --inodes --max-depth=1 {} | sort -n; remove small files", shell_word(path))));
}

}  // namespace

std::string name_of_file_system(std::uint64_t type) {
    const auto* const known = std::ranges::find(known_types, type, &known_type::number);
    return known == known_types.end() ? fmt::format("0x{:x}", type) : known->name;
}

result<file_system_facts> facts_of_file_system(const std::string& path) {
    struct statfs status{};
    if (::statfs(path.c_str(), &status) != 0)
        return failure(error::with_path(errno, "query the file system", path));
    constexpr std::uint64_t type_mask = 0xffff'ffff;
    const auto block = static_cast<std::uint64_t>(status.f_frsize > 0 ? status.f_frsize : status.f_bsize);
    constexpr auto read_only = 1;  // ST_RDONLY
    return file_system_facts{
        .type = name_of_file_system(static_cast<std::uint64_t>(status.f_type) & type_mask),
        .is_read_only = (status.f_flags & read_only) != 0,
        .total_bytes = status.f_blocks * block,
        .free_bytes = status.f_bavail * block,
        .total_inodes = status.f_files,
        .free_inodes = status.f_ffree,
        .has_attributes = not lacks(path, "user.sluice"),
        .has_acls = not lacks(path, "system.posix_acl_access"),
        .folds_case = folds_case(path)};
}

std::vector<finding> judge_file_system(const std::string& share, const std::string& path,
                                       const file_system_facts& seen, bool is_read_only_share) {
    std::vector<finding> found;
    found.push_back(
        made(severity::note, fmt::format("the share '{}' is on {}", share, seen.type),
             fmt::format("{} of {} free{}", size_text(seen.free_bytes), size_text(seen.total_bytes),
                         seen.folds_case ? "; the directory ignores case" : ""),
             ""));
    if (seen.is_read_only and not is_read_only_share)
        found.push_back(made(
            severity::problem,
            fmt::format("the file system of '{}' is mounted read-only, so that clients cannot write", path),
            "",
            fmt::format("mount -o remount,rw \"$(stat -c %m {})\"; or set 'read-only = true' for the "
                        "share. A file system that became read-only by itself has errors: dmesg",
                        path)));
    if (not is_read_only_share and not seen.is_read_only) judge_space(found, path, seen);
    if (not seen.has_attributes)
        found.push_back(
            made(severity::warning,
                 fmt::format("the file system of '{}' has no extended attributes, which DOS attributes and "
                             "creation times need",
                             path),
                 "type " + seen.type, "move the share to ext4, xfs or btrfs"));
    if (not seen.has_acls and seen.has_attributes)
        found.push_back(made(severity::note,
                             fmt::format("the file system of '{}' has no POSIX access control lists", path),
                             "type " + seen.type, ""));
    if (is_of_network(seen.type))
        found.push_back(
            made(severity::warning,
                 fmt::format("the share '{}' is on a file system of another server or program, which can be "
                             "slow or hang",
                             share),
                 "type " + seen.type,
                 "serve the directory from the host that has the disk, or set 'offload' "
                 "for the share"));
    return found;
}

}  // namespace sluice::cli::doctor

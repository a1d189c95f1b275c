#include "sluice/vfs/domain/mount_table.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "sluice/io/call/handle.hpp"

namespace sluice::vfs {
namespace {

constexpr std::array<std::string_view, 22> local_types{
    "bcachefs", "btrfs",   "devtmpfs", "erofs", "exfat", "ext2", "ext3",  "ext4",
    "f2fs",     "hfsplus", "iso9660",  "msdos", "ntfs3", "proc", "ramfs", "squashfs",
    "sysfs",    "tmpfs",   "udf",      "vfat",  "xfs",   "zfs"};
constexpr std::array<std::string_view, 21> remote_types{
    "9p",   "afs",    "autofs", "beegfs", "ceph", "cifs",  "coda",     "fuse", "fuseblk", "fusectl", "gfs2",
    "gpfs", "lustre", "ncpfs",  "nfs",    "nfs4", "ocfs2", "orangefs", "smb3", "smbfs",   "virtiofs"};

// Consumes the text before a space, and the space.
std::string_view take_field(std::string_view& rest) noexcept {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return field;
}

std::optional<unsigned> number_of(std::string_view text) noexcept {
    unsigned number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() or end != text.data() + text.size()) return std::nullopt;
    return number;
}

// Replaces the escapes of space, tab, newline and backslash, which the kernel writes as three octal
// digits.
std::string unescaped(std::string_view text) {
    std::string plain;
    for (std::size_t at = 0; at < text.size(); ++at) {
        unsigned code = 0;
        const char* const digits = text.data() + at + 1;
        const bool is_escape = text[at] == '\\' and text.size() - at > 3 and
                               std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3;
        plain += is_escape ? static_cast<char>(code) : text[at];
        if (is_escape) at += 3;
    }
    return plain;
}

// Parses "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"; see
// proc_pid_mountinfo(5).
std::optional<mount_entry> parse_line(std::string_view line) {
    std::string_view rest = line;
    const auto id = number_of(take_field(rest));
    (void)take_field(rest);
    const std::string_view device = take_field(rest);
    const std::size_t colon = device.find(':');
    if (not id or colon == device.npos) return std::nullopt;
    const auto major = number_of(device.substr(0, colon));
    const auto minor = number_of(device.substr(colon + 1));
    (void)take_field(rest);
    const std::string_view where = take_field(rest);
    const std::size_t separator = rest.find(" - ");
    if (not major or not minor or where.empty() or separator == rest.npos) return std::nullopt;
    rest.remove_prefix(separator + 3);
    return mount_entry{.id = *id,
                       .device = makedev(*major, *minor),
                       .where = unescaped(where),
                       .type = std::string(take_field(rest))};
}

}  // namespace

std::vector<mount_entry> parse_mountinfo(std::string_view text) {
    std::vector<mount_entry> mounts;
    while (not text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (auto entry = parse_line(text.substr(0, end))) mounts.push_back(*std::move(entry));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return mounts;
}

std::string read_mountinfo() {
    std::ifstream file("/proc/self/mountinfo");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::function<bool()> mount_changes() {
    // Shared by the copies of the function, and opened now, because a server opens its descriptors
    // at its start.
    auto file = std::make_shared<io::handle>();
    const auto is_open = [file] {
        if (file->is_valid()) return true;
        const int descriptor = ::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return false;
        *file = io::handle({.descriptor = descriptor, .kind = io::handle_kind::file, .readable = true});
        return true;
    };
    (void)is_open();
    return [file, is_open] {
        if (not is_open()) return true;
        pollfd watched{.fd = file->descriptor(), .events = POLLPRI, .revents = 0};
        return ::poll(&watched, 1, 0) != 0;
    };
}

call_policy policy_of_type(std::string_view type) noexcept {
    // "fuse.sshfs" is FUSE, too.
    const std::string_view family = type.substr(0, type.find('.'));
    if (std::ranges::find(remote_types, family) != remote_types.end()) return call_policy::never_inline;
    if (std::ranges::find(local_types, family) != local_types.end()) return call_policy::starts_inline;
    return call_policy::starts_offloaded;
}

}  // namespace sluice::vfs

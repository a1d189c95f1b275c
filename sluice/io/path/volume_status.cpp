#include "sluice/io/path/volume_status.hpp"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace sluice::io {
namespace {

struct known_type {
    std::uint64_t magic;
    std::string_view name;
    volume_reach reach;
    bool in_memory = false;
};

// Numbers of statfs(2); most are in <linux/magic.h>, others only in the sources of their file
// systems.
constexpr std::array known_types{
    known_type{0xef53, "ext2/3/4", volume_reach::this_host},
    known_type{0x58465342, "xfs", volume_reach::this_host},
    known_type{0x9123683e, "btrfs", volume_reach::this_host},
    known_type{0xca451a4e, "bcachefs", volume_reach::this_host},
    known_type{0x2fc12fc1, "zfs", volume_reach::this_host},
    known_type{0xf2f52010, "f2fs", volume_reach::this_host},
    known_type{0x4d44, "fat", volume_reach::this_host},
    known_type{0x2011bab0, "exfat", volume_reach::this_host},
    known_type{0x7366746e, "ntfs3", volume_reach::this_host},
    known_type{0x9660, "iso9660", volume_reach::this_host},
    known_type{0x15013346, "udf", volume_reach::this_host},
    known_type{0x73717368, "squashfs", volume_reach::this_host},
    known_type{0xe0f5e1e2, "erofs", volume_reach::this_host},
    // unknown: its lower layers may be remote.
    known_type{0x794c7630, "overlay", volume_reach::unknown},
    known_type{0x01021994, "tmpfs", volume_reach::this_host, true},
    known_type{0x858458f6, "ramfs", volume_reach::this_host, true},
    known_type{0x958458f6, "hugetlbfs", volume_reach::this_host, true},
    known_type{0x9fa0, "proc", volume_reach::this_host},
    known_type{0x62656572, "sysfs", volume_reach::this_host},
    known_type{0x65735546, "fuse", volume_reach::unknown},
    known_type{0x6969, "nfs", volume_reach::other_hosts},
    known_type{0xfe534d42, "smb2", volume_reach::other_hosts},
    known_type{0xff534d42, "cifs", volume_reach::other_hosts},
    known_type{0x00c36400, "ceph", volume_reach::other_hosts},
    known_type{0x01021997, "9p", volume_reach::other_hosts},
    known_type{0x5346414f, "afs", volume_reach::other_hosts},
    known_type{0x7461636f, "ocfs2", volume_reach::other_hosts},
    known_type{0x01161970, "gfs2", volume_reach::other_hosts},
    known_type{0x0bd00bd0, "lustre", volume_reach::other_hosts},
    known_type{0x6a656a63, "virtiofs", volume_reach::other_hosts},
};

}  // namespace

result<volume_status> volume_of(const handle& open) noexcept {
    struct statfs raw{};
    while (::fstatfs(open.descriptor(), &raw) != 0)
        if (errno != EINTR) return failure(error::last("fstatfs", open.descriptor()));
    // f_type is signed and of the width of a long: only the lower 32 bits are the number.
    const auto magic = static_cast<std::uint32_t>(raw.f_type);
    const auto* const type = std::ranges::find(known_types, magic, &known_type::magic);
    const bool is_known = type != known_types.end();
    const auto block = static_cast<extent_type>(raw.f_frsize > 0 ? raw.f_frsize : raw.f_bsize);
    return volume_status{.type_name = is_known ? type->name : "unknown",
                         .magic = magic,
                         .reach = is_known ? type->reach : volume_reach::unknown,
                         .in_memory = is_known and type->in_memory,
                         .read_only = (static_cast<unsigned long>(raw.f_flags) & ST_RDONLY) != 0,
                         .block_bytes = static_cast<std::uint32_t>(block),
                         .name_bytes_max = static_cast<std::uint32_t>(raw.f_namelen),
                         .total_bytes = raw.f_blocks * block,
                         .free_bytes = raw.f_bfree * block,
                         .available_bytes = raw.f_bavail * block,
                         .inodes_total = raw.f_files,
                         .inodes_free = raw.f_ffree};
}

}  // namespace sluice::io

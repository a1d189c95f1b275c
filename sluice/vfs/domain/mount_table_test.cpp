#include "sluice/vfs/domain/mount_table.hpp"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace sluice::vfs {
namespace {

TEST(mount_table, lines_contain_mount_superblock_path_and_type) {
    const auto mounts = parse_mountinfo(
        "36 35 98:3 /sub /mnt1 rw,noatime master:1 propagate_from:2 - ext4 /dev/root rw\n"
        "37 35 0:44 / /mnt/with\\040space\\134 rw - fuse.sshfs user@host:/ rw\n");
    ASSERT_EQ(mounts.size(), 2U);
    EXPECT_EQ(mounts[0].id, 36U);
    EXPECT_EQ(mounts[0].device, makedev(98, 3));
    EXPECT_EQ(mounts[0].where, "/mnt1");
    EXPECT_EQ(mounts[0].type, "ext4");
    EXPECT_EQ(mounts[1].where, "/mnt/with space\\");
    EXPECT_EQ(mounts[1].type, "fuse.sshfs");
}

TEST(mount_table, lines_in_another_format_are_skipped) {
    EXPECT_TRUE(parse_mountinfo("").empty());
    EXPECT_TRUE(parse_mountinfo("\n36\nx 35 98:0 / /m rw - ext4 d rw\n36 35 98 / /m rw - ext4 d rw\n"
                                "36 35 98:0 / /m rw ext4 d rw\n36 35 98:99999999999 / /m rw - ext4 d rw")
                    .empty());
}

TEST(mount_table, own_mounts_are_read) {
    EXPECT_FALSE(parse_mountinfo(read_mountinfo()).empty());
}

TEST(mount_table, remote_and_user_space_types_are_never_inline) {
    for (const char* const type : {"fuse", "fuseblk", "fuse.sshfs", "nfs", "nfs4", "cifs", "smb3", "9p",
                                   "virtiofs", "ceph", "afs", "lustre", "gfs2", "autofs"})
        EXPECT_EQ(policy_of_type(type), call_policy::never_inline) << type;
}

TEST(mount_table, local_types_start_inline_and_others_offloaded) {
    for (const char* const type : {"ext4", "xfs", "btrfs", "tmpfs", "vfat", "ntfs3"})
        EXPECT_EQ(policy_of_type(type), call_policy::starts_inline) << type;
    for (const char* const type : {"overlay", "", "somethingfs"})
        EXPECT_EQ(policy_of_type(type), call_policy::starts_offloaded) << type;
}

}  // namespace
}  // namespace sluice::vfs

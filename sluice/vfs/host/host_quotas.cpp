#include "sluice/vfs/host/host_quotas.hpp"

#include <linux/dqblk_xfs.h>
#include <linux/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

constexpr std::uint64_t block_bytes = 1024;  // of limits, in all file systems

// 0 blocks: no limit.
[[nodiscard]] std::optional<std::uint64_t> limit_of(std::uint64_t blocks) noexcept {
    if (blocks == 0) return std::nullopt;
    return std::min(blocks, ~std::uint64_t{0} / block_bytes) * block_bytes;
}

// The limits of root are not limits: the kernel does not apply them, and XFS has the defaults of
// all users there.
template <class Quota>
[[nodiscard]] user_quota described(std::uint32_t user, const Quota& found) noexcept {
    user_quota its{.user = user, .used_bytes = found.dqb_curspace};
    if (user == 0) return its;
    its.soft_limit_bytes = limit_of(found.dqb_bsoftlimit);
    its.hard_limit_bytes = limit_of(found.dqb_bhardlimit);
    return its;
}

// The smallest limit is one block.
[[nodiscard]] std::uint64_t blocks_of(const std::optional<std::uint64_t>& limit) noexcept {
    if (not limit) return 0;
    return std::max<std::uint64_t>(*limit / block_bytes + (*limit % block_bytes != 0 ? 1 : 0), 1);
}

// The kernel's words for a file system without quotas depend on the file system.
[[nodiscard]] error error_of(int code, const char* what) noexcept {
    ENSURE(code != 0, "the call has failed");
    const bool has_none =
        code == ESRCH or code == ENOSYS or code == EINVAL or code == ENOTTY or code == ENODEV;
    return {has_none ? ENOTSUP : code, what};
}

}  // namespace

int host_quotas::call(unsigned command, std::uint32_t user, void* data) const noexcept {
    const long done = ::syscall(SYS_quotactl_fd, root_.descriptor(), QCMD(command, USRQUOTA), user, data);
    return done == 0 ? 0 : errno;
}

quota_state host_quotas::state() noexcept {
    fs_quota_statv found{};
    found.qs_version = FS_QSTATV_VERSION1;
    if (call(Q_XGETQSTATV, 0, &found) != 0) return {};
    const bool is_counted = (found.qs_flags & FS_QUOTA_UDQ_ACCT) != 0;
    return {.is_counted = is_counted,
            .is_enforced = is_counted and (found.qs_flags & FS_QUOTA_UDQ_ENFD) != 0};
}

result<user_quota> host_quotas::of(std::uint32_t user) noexcept {
    if_dqblk found{};
    const int code = call(Q_GETQUOTA, user, &found);
    if (code == ENOENT) return user_quota{.user = user};
    if (code != 0) return failure(error_of(code, "query quota"));
    return described(user, found);
}

result<std::optional<user_quota>> host_quotas::next(std::uint32_t from) noexcept {
    if_nextdqblk found{};
    const int code = call(Q_GETNEXTQUOTA, from, &found);
    if (code == ENOENT) return std::nullopt;
    if (code != 0) return failure(error_of(code, "query quotas"));
    // A file system that violates this would let callers loop.
    if (found.dqb_id < from) return std::nullopt;
    return described(found.dqb_id, found);
}

result<void> host_quotas::set(const user_quota& wanted) noexcept {
    if_dqblk limits{};
    limits.dqb_bsoftlimit = blocks_of(wanted.soft_limit_bytes);
    limits.dqb_bhardlimit = blocks_of(wanted.hard_limit_bytes);
    limits.dqb_valid = QIF_BLIMITS;
    if (const int code = call(Q_SETQUOTA, wanted.user, &limits); code != 0)
        return failure(error_of(code, "set quota"));
    return {};
}

}  // namespace sluice::vfs

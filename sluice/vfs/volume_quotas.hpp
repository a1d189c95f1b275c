#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/result.hpp"

namespace sluice::vfs {

/// The limits of a host user on a file system, and the space in use.
struct user_quota {
    std::uint32_t user = 0;  // its number
    std::uint64_t used_bytes = 0;
    std::optional<std::uint64_t> soft_limit_bytes{};  // exceeded for some time only
    std::optional<std::uint64_t> hard_limit_bytes{};  // never exceeded

    [[nodiscard]] friend bool operator==(const user_quota&, const user_quota&) noexcept = default;
};

struct quota_state {
    bool is_counted = false;   // the file system counts the space of each user
    bool is_enforced = false;  // and applies the limits
};

/// The quotas of the users of a volume's file system. They include what these users store outside
/// of the volume.
///
/// Errors of all calls: ENOTSUP if the file system does not count; EPERM if the process may not
/// (on Linux, CAP_SYS_ADMIN is needed for other users than that of the process). Blocks: all calls,
/// for the file system. Thread safety: any thread at any time.
class volume_quotas {
public:
    virtual ~volume_quotas() = default;
    volume_quotas(const volume_quotas&) = delete;
    volume_quotas& operator=(const volume_quotas&) = delete;

    /// Returns an empty state if the file system has no quotas. Never fails.
    [[nodiscard]] virtual quota_state state() noexcept = 0;
    /// Returns the quota of a user, also of one that stores nothing.
    [[nodiscard]] virtual result<user_quota> of(std::uint32_t user) noexcept = 0;
    /// Returns the quota of the first user from this number on that has one; std::nullopt after
    /// the last.
    [[nodiscard]] virtual result<std::optional<user_quota>> next(std::uint32_t from) noexcept = 0;
    /// Sets the limits of a user; `used_bytes` is ignored.
    [[nodiscard]] virtual result<void> set(const user_quota& wanted) noexcept = 0;

protected:
    volume_quotas() noexcept = default;
};

}  // namespace sluice::vfs

#pragma once

#include "sluice/io/path/path_handle.hpp"
#include "sluice/vfs/volume_quotas.hpp"

namespace sluice::vfs {

/// The kernel's quotas for the users of a file system (quotactl_fd(2), Linux 5.14).
/// Immutable; the kernel guards the quotas.
class host_quotas final : public volume_quotas {
public:
    /// `root` is on the file system, and outlives this.
    explicit host_quotas(const io::path_handle& root) noexcept : root_(root) {}

    [[nodiscard]] quota_state state() noexcept override;
    [[nodiscard]] result<user_quota> of(std::uint32_t user) noexcept override;
    [[nodiscard]] result<std::optional<user_quota>> next(std::uint32_t from) noexcept override;
    [[nodiscard]] result<void> set(const user_quota& wanted) noexcept override;

private:
    [[nodiscard]] int call(unsigned command, std::uint32_t user, void* data) const noexcept;

    const io::path_handle& root_;
};

}  // namespace sluice::vfs

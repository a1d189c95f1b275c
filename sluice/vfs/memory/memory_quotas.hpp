#pragma once

#include <map>
#include <mutex>

#include "sluice/vfs/volume_quotas.hpp"

namespace sluice::vfs {

/// Quotas for tests: what users store is set, and not counted.
/// Monitor: any thread.
class memory_quotas final : public volume_quotas {
public:
    [[nodiscard]] quota_state state() noexcept override;
    [[nodiscard]] result<user_quota> of(std::uint32_t user) noexcept override;
    [[nodiscard]] result<std::optional<user_quota>> next(std::uint32_t from) noexcept override;
    [[nodiscard]] result<void> set(const user_quota& wanted) noexcept override;

    /// Sets the state, and what a user stores.
    void become(quota_state now) noexcept;
    void store(std::uint32_t user, std::uint64_t bytes);

private:
    std::mutex mutex_;
    quota_state state_{.is_counted = true, .is_enforced = true};
    std::map<std::uint32_t, user_quota> users_;
};

}  // namespace sluice::vfs

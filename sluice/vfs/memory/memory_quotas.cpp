#include "sluice/vfs/memory/memory_quotas.hpp"

#include <cerrno>

namespace sluice::vfs {

quota_state memory_quotas::state() noexcept {
    const std::scoped_lock held(mutex_);
    return state_;
}

result<user_quota> memory_quotas::of(std::uint32_t user) noexcept {
    const std::scoped_lock held(mutex_);
    if (not state_.is_counted) return failure(error(ENOTSUP, "query quota"));
    const auto found = users_.find(user);
    return found != users_.end() ? found->second : user_quota{.user = user};
}

result<std::optional<user_quota>> memory_quotas::next(std::uint32_t from) noexcept {
    const std::scoped_lock held(mutex_);
    if (not state_.is_counted) return failure(error(ENOTSUP, "query quotas"));
    const auto found = users_.lower_bound(from);
    if (found == users_.end()) return std::nullopt;
    return found->second;
}

result<void> memory_quotas::set(const user_quota& wanted) noexcept {
    const std::scoped_lock held(mutex_);
    if (not state_.is_counted) return failure(error(ENOTSUP, "set quota"));
    user_quota& entry = users_[wanted.user];
    const std::uint64_t used = entry.used_bytes;
    entry = wanted;
    entry.used_bytes = used;
    return {};
}

void memory_quotas::become(quota_state now) noexcept {
    const std::scoped_lock held(mutex_);
    state_ = now;
}

void memory_quotas::store(std::uint32_t user, std::uint64_t bytes) {
    const std::scoped_lock held(mutex_);
    users_[user].user = user;
    users_[user].used_bytes = bytes;
}

}  // namespace sluice::vfs

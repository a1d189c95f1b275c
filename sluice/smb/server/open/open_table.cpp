#include "sluice/smb/server/open/open_table.hpp"

namespace sluice::smb::server {

std::shared_ptr<open> open_table::make(const client_reference& by) {
    if (not by) return nullptr;
    quota_hold counted = by.quotas().take(by, limit::opens);
    if (counted.amount() == 0) return nullptr;
    auto one = std::allocate_shared<open>(std::pmr::polymorphic_allocator<open>(&memory_));
    const std::uint64_t number = next_++;
    one->id = {.persistent_part = le64(number), .volatile_part = le64(number)};
    one->counted = std::move(counted);
    one->counted_locks = by.quotas().take(by, limit::locks, 0);
    opens_.emplace(number, one);
    return one;
}

void open_table::remove(const open& one) noexcept {
    opens_.erase(one.id.persistent_part.value());
}

std::shared_ptr<open> open_table::find(const wire::file_id& id) const noexcept {
    const std::shared_ptr<open> found = find_persistent(id.persistent_part.value());
    return found != nullptr and found->id == id ? found : nullptr;
}

std::shared_ptr<open> open_table::find_persistent(std::uint64_t persistent) const noexcept {
    const auto found = opens_.find(persistent);
    return found == opens_.end() ? nullptr : found->second;
}

}  // namespace sluice::smb::server

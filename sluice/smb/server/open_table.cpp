#include "sluice/smb/server/open_table.hpp"

#include "sluice/smb/server/limits.hpp"

namespace sluice::smb::server {

std::shared_ptr<open> open_table::make() {
    if (opens_.size() >= limits::opens_max) return nullptr;
    auto one = std::allocate_shared<open>(std::pmr::polymorphic_allocator<open>(&memory_));
    const std::uint64_t number = next_++;
    one->id = {.persistent_part = le64(number), .volatile_part = le64(number)};
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

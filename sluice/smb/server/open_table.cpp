#include "sluice/smb/server/open_table.hpp"

#include "sluice/smb/server/limits.hpp"

namespace sluice::smb::server {

bool open_table::add(const std::shared_ptr<open>& one) {
    if (opens_.size() >= limits::opens_max) return false;
    const std::uint64_t number = next_++;
    one->id = {.persistent_part = le64(number), .volatile_part = le64(number)};
    opens_.emplace(number, one);
    return true;
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

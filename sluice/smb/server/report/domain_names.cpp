#include "sluice/smb/server/report/domain_names.hpp"

#include <algorithm>

namespace sluice::smb::server {

std::uint32_t domain_names::number_of(std::string_view name) {
    const lock_guard held(mutex_);
    const auto known = std::ranges::find(names_, name);
    const auto number = static_cast<std::uint32_t>(1 + (known - names_.begin()));
    if (known == names_.end()) names_.emplace_back(name);
    return number;
}

std::string domain_names::name_of(std::uint32_t number) const {
    const lock_guard held(mutex_);
    return number == 0 or number > names_.size() ? std::string() : names_[number - 1];
}

}  // namespace sluice::smb::server

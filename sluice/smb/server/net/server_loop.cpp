#include "sluice/smb/server/net/server_loop.hpp"

#include <algorithm>
#include <utility>

namespace sluice::smb::server {

std::size_t loop_choice::enter(const std::string& client) {
    const lock_guard held(mutex_);
    std::vector<std::size_t>& own = of_client_.try_emplace(client, of_all_.size()).first->second;
    ENSURE(own.size() == of_all_.size(), "a client has a count for each loop");
    std::size_t best = 0;
    for (std::size_t i = 1; i != own.size(); ++i)
        if (std::pair(own[i], of_all_[i]) < std::pair(own[best], of_all_[best])) best = i;
    ++own[best];
    ++of_all_[best];
    ENSURE(own[best] <= of_all_[best], "the connections of a client are among all");
    return best;
}

void loop_choice::enter(const std::string& client, std::size_t loop) {
    const lock_guard held(mutex_);
    ENSURE(loop < of_all_.size(), "a connection enters at one of the loops");
    ++of_client_.try_emplace(client, of_all_.size()).first->second[loop];
    ++of_all_[loop];
}

bool loop_choice::has(const std::string& client, std::size_t loop) const noexcept {
    const lock_guard held(mutex_);
    const auto found = of_client_.find(client);
    return found != of_client_.end() and found->second[loop] != 0;
}

void loop_choice::leave(const std::string& client, std::size_t loop) noexcept {
    const lock_guard held(mutex_);
    const auto found = of_client_.find(client);
    ENSURE(found != of_client_.end() and found->second[loop] != 0, "a connection leaves where it entered");
    ENSURE(found->second[loop] <= of_all_[loop], "the connections of a client are among all");
    --found->second[loop];
    --of_all_[loop];
    if (std::ranges::all_of(found->second, [](std::size_t count) { return count == 0; }))
        of_client_.erase(found);
}

}  // namespace sluice::smb::server

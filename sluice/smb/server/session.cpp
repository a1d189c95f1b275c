#include "sluice/smb/server/session.hpp"

#include <algorithm>

#include "sluice/smb/server/channel.hpp"

namespace sluice::smb::server {

channel* session::first_channel() const noexcept {
    const auto found = std::ranges::find_if(channels, &channel::is_established);
    return found == channels.end() ? nullptr : *found;
}

}  // namespace sluice::smb::server

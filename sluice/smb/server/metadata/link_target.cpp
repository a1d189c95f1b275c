#include "sluice/smb/server/metadata/link_target.hpp"

#include <algorithm>
#include <cstddef>

namespace sluice::smb::server {

bool stays_in_share(std::string_view target, std::string_view directory) noexcept {
    if (target.empty() or target.starts_with('/') or target.find('\0') != target.npos) return false;
    // Also "C:" and "\??\C:" in another spelling: a name with a colon would be a
    // stream's to clients.
    if (target.substr(0, target.find('/')).find(':') != target.npos) return false;
    std::ptrdiff_t levels_up = directory.empty() ? 0 : 1 + std::ranges::count(directory, '/');
    bool has_gone_down = false;
    for (std::size_t at = 0; at <= target.size();) {
        const std::size_t end = std::min(target.find('/', at), target.size());
        const std::string_view component = target.substr(at, end - at);
        at = end + 1;
        if (component.empty() or component == ".") continue;
        if (component != "..") {
            has_gone_down = true;
        } else if (has_gone_down or --levels_up < 0) {
            return false;
        }
    }
    return true;
}

}  // namespace sluice::smb::server

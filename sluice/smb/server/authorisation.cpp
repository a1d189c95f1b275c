#include "sluice/smb/server/authorisation.hpp"

namespace sluice::smb::server {

wire::access_mask rights_to(const request& r, vfs::node&) noexcept {
    return r.tree->access_max;
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/net/untold_grant.hpp"

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

untold_grant::~untold_grant() {
    if (of_ != nullptr) host_->functions().end_untold_grant(*host_, of_);
}

}  // namespace sluice::smb::server

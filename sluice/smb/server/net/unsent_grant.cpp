#include "sluice/smb/server/net/unsent_grant.hpp"

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

unsent_grant::~unsent_grant() {
    if (of_ != nullptr) host_->functions().end_unsent_grant(*host_, of_);
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/durable.hpp"

#include "sluice/smb/server/server.hpp"

namespace sluice::smb::server {

bool keep_without_client(smb_server&, open& one) noexcept {
    return one.is_durable and false;
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/named_pipe.hpp"

namespace sluice::smb::server {

std::unique_ptr<named_pipe> make_named_pipe(smb_server&, std::string_view) {
    return nullptr;
}

}  // namespace sluice::smb::server

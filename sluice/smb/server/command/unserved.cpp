#include "sluice/smb/server/command.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> serve_query_info(request&) {
    co_return nt_status::not_implemented;
}
io::task<nt_status> serve_set_info(request&) {
    co_return nt_status::not_implemented;
}

}  // namespace sluice::smb::server

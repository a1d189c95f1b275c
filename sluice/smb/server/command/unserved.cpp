#include "sluice/smb/server/command.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> serve_lock(request&) {
    co_return nt_status::not_implemented;
}
io::task<nt_status> serve_ioctl(request&) {
    co_return nt_status::invalid_device_request;
}
io::task<nt_status> serve_query_directory(request&) {
    co_return nt_status::not_implemented;
}
io::task<nt_status> serve_change_notify(request&) {
    co_return nt_status::not_implemented;
}

}  // namespace sluice::smb::server

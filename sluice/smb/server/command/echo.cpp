#include "sluice/smb/wire/message/echo.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

io::task<wire::nt_status> serve_echo(request& r) {
    if (not wire::decode_echo(r.message())) co_return wire::nt_status::invalid_parameter;
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return wire::nt_status::insufficient_resources;
    encode(*body, wire::echo_reply{});
    co_return wire::nt_status::success;
}

}  // namespace sluice::smb::server

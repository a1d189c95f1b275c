#include "sluice/smb/wire/message/logoff.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

io::task<wire::nt_status> serve_logoff(request& r) {
    if (not wire::decode_logoff(r.message())) co_return wire::nt_status::invalid_parameter;
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return wire::nt_status::insufficient_resources;
    encode(*body, wire::logoff_reply{});
    // The request still holds the session, whose key signs the reply. A user who logs off may come
    // back for what is durable, as one whose connection was lost ([MS-SMB2] 3.3.5.6).
    io::task<void> ending = co_end_session(r.host(), r.loop(), r.session, true);
    co_await std::move(ending);
    co_return wire::nt_status::success;
}

}  // namespace sluice::smb::server

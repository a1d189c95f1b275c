#include "sluice/smb/wire/message/tree_disconnect.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

io::task<wire::nt_status> serve_tree_disconnect(request& r) {
    if (not wire::decode_tree_disconnect(r.message())) co_return wire::nt_status::invalid_parameter;
    byte_writer* const body = r.begin_reply(8);
    if (body == nullptr) co_return wire::nt_status::insufficient_resources;
    encode(*body, wire::tree_disconnect_reply{});
    end_tree(r.host(), *r.session, *r.tree);
    co_return wire::nt_status::success;
}

}  // namespace sluice::smb::server

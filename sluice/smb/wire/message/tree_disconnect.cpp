#include "sluice/smb/wire/message/tree_disconnect.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {

decoded<tree_disconnect_args> decode_tree_disconnect(const message_view& message) noexcept {
    return decode_empty_body<tree_disconnect_args>(message);
}

void encode(byte_writer& writer, const tree_disconnect_args&) noexcept {
    encode_empty_body(writer);
}

decoded<tree_disconnect_reply> decode_tree_disconnect_reply(const message_view& message) noexcept {
    return decode_empty_body<tree_disconnect_reply>(message);
}

void encode(byte_writer& writer, const tree_disconnect_reply&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/message/logoff.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {

decoded<logoff_args> decode_logoff(const message_view& message) noexcept {
    return decode_empty_body<logoff_args>(message);
}

void encode(byte_writer& writer, const logoff_args&) noexcept {
    encode_empty_body(writer);
}

decoded<logoff_reply> decode_logoff_reply(const message_view& message) noexcept {
    return decode_empty_body<logoff_reply>(message);
}

void encode(byte_writer& writer, const logoff_reply&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire

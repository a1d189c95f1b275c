#include "sluice/smb/wire/message/echo.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {

decoded<echo_args> decode_echo(const message_view& message) noexcept {
    return decode_empty_body<echo_args>(message);
}

void encode(byte_writer& writer, const echo_args&) noexcept {
    encode_empty_body(writer);
}

decoded<echo_reply> decode_echo_reply(const message_view& message) noexcept {
    return decode_empty_body<echo_reply>(message);
}

void encode(byte_writer& writer, const echo_reply&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire

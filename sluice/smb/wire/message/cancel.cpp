#include "sluice/smb/wire/message/cancel.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {

decoded<cancel_args> decode_cancel(const message_view& message) noexcept {
    return decode_empty_body<cancel_args>(message);
}

void encode(byte_writer& writer, const cancel_args&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire

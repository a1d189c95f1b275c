#include "sluice/smb/server/net/request_signature.hpp"

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

bool has_signed(auth::signer& by, const request& r) noexcept {
    ENSURE(r.loop().is_owner(), "a request is checked on its loop");
    const auth::signed_message which{.message_id = r.header().message_id,
                                     .sender = auth::message_sender::client,
                                     .is_cancel = r.header().command == wire::command::cancel};
    const auto parts = auth::with_zero_signature(r.message().bytes());
    return by.verify(parts, which, r.header().signature);
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/net/request_signature.hpp"

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

namespace {

// A short message takes a few microseconds to check. A thread that waits for the latch spins for that long.
constexpr std::size_t bytes_checked_latched_max = 1024;

}  // namespace

bool has_signed(auth::signer& by, const request& r) noexcept {
    ENSURE(r.host().latch().is_mine());
    std::optional<server_latch::pause> computing;
    if (r.message().bytes().size() > bytes_checked_latched_max) computing.emplace(r.host().latch());
    const auth::signed_message which{.message_id = r.header().message_id,
                                     .sender = auth::message_sender::client,
                                     .is_cancel = r.header().command == wire::command::cancel};
    const auto parts = auth::with_zero_signature(r.message().bytes());
    return by.verify(parts, which, r.header().signature);
}

}  // namespace sluice::smb::server

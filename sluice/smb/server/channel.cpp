#include "sluice/smb/server/channel.hpp"

#include "sluice/smb/server/session.hpp"

namespace sluice::smb::server {

result<void> channel::make_ciphers(secret_random_source& random) noexcept {
    if (not session->sealing) return {};
    auto made_opener = auth::opener::create(*session->opening);
    if (not made_opener) return failure(made_opener.error());
    auto made_sealer = session->sealing->make_sealer(random);
    if (not made_sealer) return failure(made_sealer.error());
    opener.emplace(*std::move(made_opener));
    sealer.emplace(*std::move(made_sealer));
    return {};
}

}  // namespace sluice::smb::server

#include "sluice/smb/server/session/channel.hpp"

namespace sluice::smb::server {

result<void> channel::make_ciphers(auth::sealing_key& encryption_key, const auth::cipher_key& decryption_key,
                                   secret_random_source& random) noexcept {
    auto made_opener = auth::opener::create(decryption_key);
    if (not made_opener) return failure(made_opener.error());
    auto made_sealer = encryption_key.make_sealer(random);
    if (not made_sealer) return failure(made_sealer.error());
    opener.emplace(*std::move(made_opener));
    sealer.emplace(*std::move(made_sealer));
    return {};
}

}  // namespace sluice::smb::server

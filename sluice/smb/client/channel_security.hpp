#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"

namespace sluice::smb::client {

/// The keys that a connection uses for a session, and the rules for their use.
struct channel_security {
    std::uint64_t session_id = 0;
    std::optional<auth::signer> signer{};
    std::optional<auth::sealer> sealer{};
    std::optional<auth::opener> opener{};
    bool signs_all = false;  ///< signs every request, even if it does not require that
    bool seals_all = false;
};

}  // namespace sluice::smb::client

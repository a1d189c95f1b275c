#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/auth/sealing.hpp"
#include "sluice/smb/auth/signing.hpp"

namespace sluice::smb::client {

/// The keys with which one connection speaks for a session, and when it uses them.
struct channel_security {
    std::uint64_t session_id = 0;
    std::optional<auth::signer> signer{};
    std::optional<auth::sealer> sealer{};
    std::optional<auth::opener> opener{};
    bool signs_all = false;  ///< every request, whether or not one asks for it
    bool seals_all = false;
};

}  // namespace sluice::smb::client

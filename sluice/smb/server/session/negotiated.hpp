#pragma once

#include <optional>
#include <vector>

#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/wire/compression/compressed_message.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

namespace sluice::smb::server {

/// The parameters that a connection has negotiated ([MS-SMB2] 3.3.1.7).
struct negotiated {
    // None yet; smb_2_wildcard: an SMB1 client must negotiate again.
    std::optional<wire::dialect> dialect;
    std::vector<wire::dialect> offered_dialects;
    wire::security_mode offered_security_mode = wire::security_mode::none;
    wire::capabilities offered_capabilities = wire::capabilities::none;
    wire::security_mode security_mode = wire::security_mode::none;  // ours
    wire::capabilities capabilities = wire::capabilities::none;     // ours
    wire::guid client{};
    auth::signing_algorithm signing = auth::signing_algorithm::hmac_sha256;
    std::optional<auth::cipher_algorithm> cipher;
    wire::negotiated_compression compression{};

    [[nodiscard]] bool is_done() const noexcept {
        return dialect.has_value() and * dialect != wire::dialect::smb_2_wildcard;
    }
    [[nodiscard]] bool is_at_least(wire::dialect wanted) const noexcept {
        return is_done() and * dialect >= wanted;
    }
};

}  // namespace sluice::smb::server

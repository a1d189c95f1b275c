#pragma once

#include <optional>
#include <string_view>
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
    /// Returns the dialect, as "3.1.1"; an empty text if there is none.
    [[nodiscard]] std::string_view dialect_name() const noexcept {
        switch (dialect.value_or(wire::dialect::smb_2_wildcard)) {
            case wire::dialect::smb_2_0_2:
                return "2.0.2";
            case wire::dialect::smb_2_1:
                return "2.1";
            case wire::dialect::smb_3_0:
                return "3.0";
            case wire::dialect::smb_3_0_2:
                return "3.0.2";
            case wire::dialect::smb_3_1_1:
                return "3.1.1";
            case wire::dialect::smb_2_wildcard:
                break;
        }
        return {};
    }
    [[nodiscard]] bool is_at_least(wire::dialect wanted) const noexcept {
        return is_done() and * dialect >= wanted;
    }
};

}  // namespace sluice::smb::server

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/limits.hpp"

// The tokens of SPNEGO (RFC 4178, and [MS-SPNG] for Microsoft's extensions), which negotiate a
// mechanism.

namespace sluice::smb::auth::spnego {

enum class mechanism : std::uint8_t {
    unknown,
    ntlm,               // 1.3.6.1.4.1.311.2.2.10
    kerberos,           // 1.2.840.113554.1.2.2
    kerberos_as_by_2k,  // 1.2.840.48018.1.2.2: the same with one wrong number, as in Windows 2000
    negoex,             // 1.3.6.1.4.1.311.2.2.30
};

enum class state : std::uint8_t { accept_completed = 0, accept_incomplete = 1, reject = 2, request_mic = 3 };

/// The mechanisms that a side offers, in order of preference. Unknown ones keep their place.
class mechanism_list {
public:
    /// Adds a mechanism. Returns false, and adds nothing, beyond limits::mechanisms_max.
    [[nodiscard]] bool add(mechanism which) noexcept;
    [[nodiscard]] std::span<const mechanism> all() const noexcept { return {which_.data(), size_}; }
    [[nodiscard]] bool contains(mechanism which) const noexcept;

private:
    std::array<mechanism, limits::mechanisms_max> which_{};
    std::size_t size_ = 0;
};

/// A NegTokenInit, the client's first token; or a NegTokenInit2, which a server sends unsolicited.
/// Borrows from the token.
struct neg_token_init {
    mechanism_list mechanisms;
    bytes_view mechanism_list_der;         // the encoded list, which the MIC protects
    std::optional<bytes_view> mech_token;  // the first mechanism's token, sent optimistically
    std::optional<bytes_view> mech_list_mic;
};

/// A NegTokenResp, every later token of either side. Borrows from the token.
struct neg_token_resp {
    std::optional<spnego::state> negotiation_state;
    std::optional<mechanism> supported_mechanism;
    std::optional<bytes_view> response_token;
    std::optional<bytes_view> mech_list_mic;
};

/// Returns whether that begins like a SPNEGO token rather than a bare token of a mechanism. Checks
/// nothing else.
[[nodiscard]] bool is_init(bytes_view token) noexcept;
[[nodiscard]] bool is_resp(bytes_view token) noexcept;

/// Returns std::nullopt if that is not such a token, or lists no mechanism, or more than
/// limits::mechanisms_max. Allocates: nothing.
[[nodiscard]] std::optional<neg_token_init> decode_init(bytes_view token) noexcept;
[[nodiscard]] std::optional<neg_token_resp> decode_resp(bytes_view token) noexcept;

/// Returns the list in its form in a token, for encode_init and for the MIC. `unknown` cannot be
/// encoded. Allocates: the bytes.
[[nodiscard]] std::vector<std::byte> encode_mechanism_list(std::span<const mechanism> mechanisms);

/// Allocates: the token. `mechanism_list_der` must be set; `mechanisms` is ignored.
[[nodiscard]] std::vector<std::byte> encode(const neg_token_init& token);
[[nodiscard]] std::vector<std::byte> encode(const neg_token_resp& token);

/// Returns a server's offer for its NEGOTIATE response: the list, and a placeholder hint.
/// Allocates: the token.
[[nodiscard]] std::vector<std::byte> encode_server_offer(std::span<const mechanism> mechanisms);

}  // namespace sluice::smb::auth::spnego

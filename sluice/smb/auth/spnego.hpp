#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/limits.hpp"

// The tokens of SPNEGO (RFC 4178, and [MS-SPNG] for what Microsoft added): which mechanism shall we use?

namespace sluice::smb::auth::spnego {

enum class mechanism : std::uint8_t {
    unknown,
    ntlm,               // 1.3.6.1.4.1.311.2.2.10
    kerberos,           // 1.2.840.113554.1.2.2
    kerberos_as_by_2k,  // 1.2.840.48018.1.2.2: the same with one number wrong, as Windows 2000 spelled it
    negoex,             // 1.3.6.1.4.1.311.2.2.30
};

enum class state : std::uint8_t { accept_completed = 0, accept_incomplete = 1, reject = 2, request_mic = 3 };

/// The mechanisms a side offers, most wanted first. What we do not know keeps its place.
class mechanism_list {
public:
    /// False, and nothing added, beyond limits::mechanisms_max.
    [[nodiscard]] bool add(mechanism which) noexcept;
    [[nodiscard]] std::span<const mechanism> all() const noexcept { return {which_.data(), size_}; }
    [[nodiscard]] bool contains(mechanism which) const noexcept;

private:
    std::array<mechanism, limits::mechanisms_max> which_{};
    std::size_t size_ = 0;
};

/// A NegTokenInit, the client's first token; or NegTokenInit2, which a server sends before anybody asked.
/// Borrows from the token.
struct neg_token_init {
    mechanism_list mechanisms;
    bytes_view mechanism_list_der;         // the list as it was encoded, which is what the MIC protects
    std::optional<bytes_view> mech_token;  // the first mechanism's token, sent in the hope it is wanted
    std::optional<bytes_view> mech_list_mic;
};

/// A NegTokenResp, every later token of either side. Borrows from the token.
struct neg_token_resp {
    std::optional<spnego::state> negotiation_state;
    std::optional<mechanism> supported_mechanism;
    std::optional<bytes_view> response_token;
    std::optional<bytes_view> mech_list_mic;
};

/// Does that look like a SPNEGO token rather than a bare one of some mechanism? Decides nothing else.
[[nodiscard]] bool is_init(bytes_view token) noexcept;
[[nodiscard]] bool is_resp(bytes_view token) noexcept;

/// Nothing if that is no such token, or lists no mechanism, or more than limits::mechanisms_max.
/// Allocates: nothing.
[[nodiscard]] std::optional<neg_token_init> decode_init(bytes_view token) noexcept;
[[nodiscard]] std::optional<neg_token_resp> decode_resp(bytes_view token) noexcept;

/// The list as it stands in a token, for encode_init and for the MIC. `unknown` cannot be spelled.
/// Allocates: the bytes.
[[nodiscard]] std::vector<std::byte> encode_mechanism_list(std::span<const mechanism> mechanisms);

/// Allocates: the token. `mechanism_list_der` must be set; `mechanisms` is not looked at.
[[nodiscard]] std::vector<std::byte> encode(const neg_token_init& token);
[[nodiscard]] std::vector<std::byte> encode(const neg_token_resp& token);

/// What a server offers in its NEGOTIATE response: the list, and the hint that says not to look for one.
/// Allocates: the token.
[[nodiscard]] std::vector<std::byte> encode_server_offer(std::span<const mechanism> mechanisms);

}  // namespace sluice::smb::auth::spnego

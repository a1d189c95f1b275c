#pragma once

#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/auth/logon/ntlm_crypto.hpp"
#include "sluice/smb/auth/logon/ntlm_messages.hpp"

namespace sluice::smb::auth {

/// The names of a server, UTF-8. Clients display them and compare them with the requested name.
struct server_names {
    std::string netbios_computer = "SLUICE";
    std::string netbios_domain = "WORKGROUP";
    std::string dns_computer = "sluice";
    std::string dns_domain = "";
};

/// The server's half of NTLMv2, [MS-NLMP] 3.2.5.1: NEGOTIATE, CHALLENGE, AUTHENTICATE. One object
/// serves one logon attempt.
///
/// NTLMv1 and LM responses are rejected for every account. A client that announces a MIC must send
/// a valid one. Extended session security is optional, and nothing can be signed without it. An
/// unknown user is checked like a known one, with a random hash. Thread safety: none of its own.
/// Allocates: its messages. Blocks: as the account source does.
class ntlm_acceptor {
public:
    /// The references outlive the acceptor. `random` generates the challenge.
    ntlm_acceptor(const server_names& names, account_source& accounts, secret_random_source& random,
                  const clock_source& clock) noexcept
        : names_(names), accounts_(accounts), random_(random), clock_(clock) {}

    /// Processes the client's next message. After a result other than step_continue, no further
    /// message follows.
    [[nodiscard]] step_result step(bytes_view token) noexcept;

    /// Returns, after step_done, whether the two functions below may be called. They may not after
    /// a logon without extended session security.
    [[nodiscard]] bool can_sign() const noexcept { return server_signatures_.has_value(); }
    /// Signs a SPNEGO mechanism list, or verifies the client's signature of it, once each, after
    /// step_done.
    [[nodiscard]] ntlm::message_signer::signature sign(bytes_view mechanism_list) noexcept;
    [[nodiscard]] bool verify(bytes_view mechanism_list, bytes_view claimed) noexcept;

private:
    enum class phase : std::uint8_t { negotiate, authenticate, over };
    struct answer;

    [[nodiscard]] step_result challenge(bytes_view token);
    [[nodiscard]] step_result authenticate(bytes_view token);
    [[nodiscard]] step_result check(const answer& given, bytes_view token);
    [[nodiscard]] step_result finish(const answer& given, const secret_bytes<16>& key_exchange_key,
                                     bytes_view token, bool mic_required);
    [[nodiscard]] std::vector<std::byte> target_information() const;

    const server_names& names_;
    account_source& accounts_;
    secret_random_source& random_;
    const clock_source& clock_;

    phase phase_ = phase::negotiate;
    std::uint32_t offered_flags_ = 0;
    ntlm::challenge_bytes server_challenge_{};
    std::vector<std::byte> negotiate_token_;  // both kept for the MIC
    std::vector<std::byte> challenge_token_;
    std::optional<ntlm::message_signer> client_signatures_;
    std::optional<ntlm::message_signer> server_signatures_;
};

}  // namespace sluice::smb::auth

#pragma once

#include <vector>

#include "sluice/smb/auth/logon/ntlm_acceptor.hpp"
#include "sluice/smb/auth/logon/ntlm_initiator.hpp"
#include "sluice/smb/auth/logon/spnego.hpp"

// SPNEGO around NTLM, for both sides. If a client prefers Kerberos, it is recognised and declined.

namespace sluice::smb::auth {

/// The server's side of a session setup. It accepts SPNEGO tokens or bare NTLM tokens, depending on
/// the client's first token. One object serves one logon attempt. Thread safety, allocation,
/// blocking: as ntlm_acceptor.
class negotiator {
public:
    /// The references outlive the negotiator.
    negotiator(const server_names& names, account_source& accounts, secret_random_source& random,
               const clock_source& clock) noexcept
        : ntlm_(names, accounts, random, clock) {}

    /// Returns the token for a NEGOTIATE response: the supported mechanisms.
    [[nodiscard]] static std::vector<std::byte> offer();

    /// Processes the security buffer of the next SESSION_SETUP request. If NTLM was not the
    /// client's first choice, a MIC must protect the mechanism list (RFC 4178, section 5), and a
    /// logon of a named user without extended session security is refused, because it has none.
    /// Otherwise a MIC is optional, and is checked and answered if the client sends one.
    [[nodiscard]] step_result step(bytes_view token) noexcept;

private:
    enum class phase : std::uint8_t { first, bare, spnego, over };

    [[nodiscard]] step_result begin(bytes_view token);
    [[nodiscard]] step_result go_on(bytes_view token);
    [[nodiscard]] step_result wrap(step_result inner, const spnego::neg_token_resp& request);

    ntlm_acceptor ntlm_;
    phase phase_ = phase::first;
    unsigned steps_ = 0;
    bool mechanism_was_named_ = false;
    bool mic_required_ = false;
    std::vector<std::byte> mechanism_list_;  // as the client encoded it
};

/// The client's side. Thread safety, allocation: as ntlm_initiator.
class initiating_negotiator {
public:
    /// The references outlive the negotiator.
    initiating_negotiator(const credentials& who, secret_random_source& random,
                          const clock_source& clock) noexcept
        : ntlm_(who, random, clock) {}

    /// Processes a token: first the server's offer, which may be empty, then each token of the
    /// server. The result is step_done, without a token, after the server has accepted and its
    /// proof, if it can give one, was verified.
    [[nodiscard]] step_result step(bytes_view token) noexcept;

private:
    enum class phase : std::uint8_t { first, challenge, verdict, over };

    [[nodiscard]] step_result begin(bytes_view offer);
    [[nodiscard]] step_result answer(const spnego::neg_token_resp& token);
    [[nodiscard]] step_result conclude(const spnego::neg_token_resp& token);

    ntlm_initiator ntlm_;
    phase phase_ = phase::first;
    std::vector<std::byte> mechanism_list_;
    std::optional<step_done> outcome_;  // the client's result, until the server accepts
};

}  // namespace sluice::smb::auth

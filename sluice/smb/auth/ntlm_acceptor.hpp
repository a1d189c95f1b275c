#pragma once

#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/auth/ntlm_crypto.hpp"
#include "sluice/smb/auth/ntlm_messages.hpp"

namespace sluice::smb::auth {

/// The names by which a server introduces itself, UTF-8. Clients show them and compare them with what they
/// asked for.
struct server_names {
    std::string netbios_computer = "SLUICE";
    std::string netbios_domain = "WORKGROUP";
    std::string dns_computer = "sluice";
    std::string dns_domain = "";
};

/// The server's half of NTLMv2, [MS-NLMP] 3.2.5.1: NEGOTIATE, CHALLENGE, AUTHENTICATE. One object serves one
/// attempt to log on.
///
/// NTLMv1 and LM answers are refused, whatever account they are for. A client that announces a MIC must have
/// a right one. An unknown user is checked like a known one, with a hash that nobody knows.
/// Thread safety: none of its own. Allocates: its messages. Blocks: as the account source does.
class ntlm_acceptor {
public:
    /// The references outlive the acceptor. `random` makes the challenge.
    ntlm_acceptor(const server_names& names, account_source& accounts, secret_random_source& random,
                  const clock_source& clock) noexcept
        : names_(names), accounts_(accounts), random_(random), clock_(clock) {}

    /// Takes the client's next message. After a result other than step_continue comes nothing more.
    [[nodiscard]] step_result step(bytes_view token) noexcept;

    /// After step_done: can the two below be called? Not if nobody logged on, without session security.
    [[nodiscard]] bool can_sign() const noexcept { return server_signatures_.has_value(); }
    /// Signs, or checks the client's signature of, a SPNEGO mechanism list, each once; after step_done.
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

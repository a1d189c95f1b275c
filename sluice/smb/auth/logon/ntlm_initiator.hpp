#pragma once

#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/auth/logon/ntlm_crypto.hpp"

namespace sluice::smb::auth {

/// The credentials for a logon to a server. All are UTF-8.
struct credentials {
    std::string user;
    std::string domain;
    std::string workstation;
    std::string target_name;      // "cifs/server", with which a server can check
                                  // that it is the target
    std::optional<nt_hash> hash;  // std::nullopt: anonymous, with an empty user
    bool exchanges_key = true;    // generates its own session key, like all current clients
};

/// The client's half of NTLMv2, [MS-NLMP] 3.1.5.1. One object serves one logon attempt.
/// Thread safety: none of its own. Allocates: its messages.
class ntlm_initiator {
public:
    /// The references outlive the initiator. `random` generates the client's challenge and the
    /// session key.
    ntlm_initiator(const credentials& who, secret_random_source& random, const clock_source& clock) noexcept
        : who_(who), random_(random), clock_(clock) {}

    /// Processes a token: the first call without one, the second with the server's. The
    /// AUTHENTICATE message is the last, in step_done.
    [[nodiscard]] step_result step(bytes_view token) noexcept;

    /// Signs a SPNEGO mechanism list, or verifies the server's signature of it, once each, after
    /// step_done.
    [[nodiscard]] ntlm::message_signer::signature sign(bytes_view mechanism_list) noexcept;
    [[nodiscard]] bool verify(bytes_view mechanism_list, bytes_view claimed) noexcept;

private:
    enum class phase : std::uint8_t { negotiate, authenticate, over };

    [[nodiscard]] step_result negotiate();
    [[nodiscard]] step_result authenticate(bytes_view token);

    const credentials& who_;
    secret_random_source& random_;
    const clock_source& clock_;

    phase phase_ = phase::negotiate;
    std::vector<std::byte> negotiate_token_;
    std::optional<ntlm::message_signer> client_signatures_;
    std::optional<ntlm::message_signer> server_signatures_;
};

}  // namespace sluice::smb::auth

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"
#include "sluice/cli/doctor/remote/exchange.hpp"

namespace sluice::cli::doctor {

/// The answers of a server to NEGOTIATE requests.
struct negotiation {
    probe_outcome first;  ///< to the offer of everything
    probe_outcome smb1;   ///< to an offer of SMB1 alone
    /// What the server accepted when nothing else was offered.
    std::vector<smb::wire::dialect> dialects;
    std::vector<smb::wire::cipher> ciphers;
    std::vector<smb::wire::signing_algorithm> signings;
    bool is_complete = false;  ///< each offer was answered

    /// Returns whether the server speaks SMB 2 or 3 with this client.
    [[nodiscard]] bool is_smb2() const noexcept {
        return first.how == reaction::answered and
               first.answer.protocol == smb::client::probed_protocol::smb2;
    }
};

/// Sends the offers, one connection each, and stops at the first that is not answered, because a
/// server that does not answer once may not answer ten times. Blocks: until the deadline.
[[nodiscard]] negotiation negotiate_with(const io::socket_address& address, random_source& random,
                                         std::chrono::steady_clock::time_point until);

/// Returns the findings about a server that does not speak SMB 2 or 3: another protocol, SMB1 only,
/// silence, an invalid reply. Pure function.
[[nodiscard]] std::vector<finding> judge_protocol(std::uint16_t port, const negotiation& seen);

/// Returns the findings about the reply of an SMB server: dialects, signing, encryption, clock.
/// `now` is the time of this host. Pure function.
[[nodiscard]] std::vector<finding> judge_negotiation(const negotiation& seen,
                                                     std::chrono::system_clock::time_point now);

/// Returns the findings about the clients that can use this server. Pure function.
[[nodiscard]] std::vector<finding> judge_clients(const negotiation& seen);

/// Return names for people, as in "3.1.1" and "AES-128-GCM"; a number for an unknown code.
[[nodiscard]] std::string name_of_dialect(smb::wire::dialect code);
[[nodiscard]] std::string name_of_cipher(smb::wire::cipher code);
[[nodiscard]] std::string name_of_signing(smb::wire::signing_algorithm code);
[[nodiscard]] std::string name_of_compression(smb::wire::compression_algorithm code);

}  // namespace sluice::cli::doctor

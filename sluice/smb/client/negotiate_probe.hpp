#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/smb/client/limits.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

// NEGOTIATE without a connection: the bytes to send to an unknown server, and the meaning of the
// bytes that it sends back. All functions are pure, so that the caller chooses how to send and how
// long to wait. Thread safety: any thread.

namespace sluice::smb::client {

/// The offers of one probe. Empty lists are not sent.
struct negotiate_offer {
    std::vector<wire::dialect> dialects;  ///< 1 to 5
    std::vector<wire::cipher> ciphers;    ///< at most 8; the lists: only with dialect 3.1.1
    std::vector<wire::signing_algorithm> signings;
    std::vector<wire::compression_algorithm> compressions;
};

/// Returns the frame of a NEGOTIATE request ([MS-SMB2] 2.2.3) with its prefix. Allocates: it.
[[nodiscard]] std::vector<std::byte> negotiate_probe_request(const negotiate_offer& offer,
                                                             random_source& random);

/// Returns the frame of an SMB1 NEGOTIATE request that offers NT LM 0.12 alone ([MS-CIFS]
/// 2.2.4.52.1), which a server without SMB1 does not accept. Allocates: the frame.
[[nodiscard]] std::vector<std::byte> smb1_probe_request();

/// The protocol of the first bytes that a server has sent.
enum class probed_protocol : std::uint8_t {
    incomplete,     ///< too few bytes, such as the beginning of an SMB frame; receive more
    smb2,           ///< a NEGOTIATE reply of SMB 2 or 3: `reply`
    smb2_refused,   ///< an SMB2 message with an error: `status`
    smb2_invalid,   ///< an SMB2 message that violates the protocol: `violation`
    smb1,           ///< an SMB1 NEGOTIATE reply that accepts NT LM 0.12
    smb1_refused,   ///< an SMB1 NEGOTIATE reply that accepts no offered dialect
    netbios_error,  ///< a packet of the NetBIOS session service (RFC 1002 4.3)
    http,
    tls,
    ssh,
    unknown,
};

/// A NEGOTIATE reply, with memory of its own.
struct negotiate_facts {
    wire::dialect dialect = wire::dialect::smb_2_0_2;
    wire::security_mode security_mode = wire::security_mode::none;
    wire::capabilities capabilities = wire::capabilities::none;
    wire::guid server_guid{};
    std::uint32_t transact_bytes_max = 0;
    std::uint32_t read_bytes_max = 0;
    std::uint32_t write_bytes_max = 0;
    wire::filetime system_time{};
    std::optional<wire::cipher> cipher;                     ///< none: the reply has no such context
    std::optional<wire::signing_algorithm> signing;         ///< the same
    std::vector<wire::compression_algorithm> compressions;  ///< at most 8
    bool has_preauth = false;                               ///< SHA-512, which 3.1.1 requires
    bool has_posix = false;                                 ///< the POSIX extensions
};

struct probe_answer {
    probed_protocol protocol = probed_protocol::incomplete;
    negotiate_facts reply{};
    wire::nt_status status = wire::nt_status::success;
    wire::decode_error violation = wire::decode_error::truncated;
};

/// Classifies all bytes that a server has sent so far after one of the requests above. Does not
/// trust them: a frame longer than limits::first_frame_bytes_max is unknown. Allocates: a short
/// list. Complexity: linear in the first frame.
[[nodiscard]] probe_answer classify_probe_answer(bytes_view received);

}  // namespace sluice::smb::client

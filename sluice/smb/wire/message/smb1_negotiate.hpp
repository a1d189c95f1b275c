#pragma once

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::wire {

/// The one SMB1 message that an SMB2 server answers. Clients that also support SMB1 begin with it
/// and offer SMB2 by dialect names ([MS-SMB2] 3.3.5.3). If `smb_2_wildcard`, the answer is a
/// NEGOTIATE response of dialect 0x02FF and the client negotiates again. If only `smb_2_002`, the
/// answer has dialect 2.0.2.
struct smb1_negotiate {
    bool smb_2_002 = false;       ///< "SMB 2.002" is offered
    bool smb_2_wildcard = false;  ///< "SMB 2.???" is offered

    [[nodiscard]] friend bool operator==(const smb1_negotiate&, const smb1_negotiate&) noexcept = default;
};

/// Errors: `truncated`, `bad_protocol_id`, `bad_value` (another command, a reply, or a dialect list
/// that violates [MS-CIFS] 2.2.4.52.1), `range_outside_message`. Allocates: nothing. Complexity:
/// linear.
[[nodiscard]] decoded<smb1_negotiate> decode_smb1_negotiate(bytes_view frame) noexcept;

/// Writes a complete frame, with "NT LM 0.12" before the SMB2 dialects, as clients do.
void encode(byte_writer& writer, const smb1_negotiate& negotiate) noexcept;

}  // namespace sluice::smb::wire

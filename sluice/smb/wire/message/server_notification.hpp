#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// SERVER_TO_CLIENT_NOTIFICATION with the only type that there is, SmbNotifySessionClosed: the
/// server has closed the session that the header names ([MS-SMB2] 2.2.44). It is not a reply: its
/// message ID has all bits set.
struct session_closed_notification {
    [[nodiscard]] friend bool operator==(const session_closed_notification&,
                                         const session_closed_notification&) noexcept = default;
};

/// Accepts each StructureSize that contains the type, because more types may follow.
/// Errors: `truncated`, `bad_structure_size`, `unsupported` for another type. Allocates: nothing.
[[nodiscard]] decoded<session_closed_notification> decode_server_notification(
    const message_view& message) noexcept;

void encode(byte_writer& writer, const session_closed_notification& notification) noexcept;

}  // namespace sluice::smb::wire

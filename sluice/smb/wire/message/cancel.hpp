#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// CANCEL, [MS-SMB2] 2.2.30. Its header identifies the request to cancel. The server does not
/// respond to it.
struct cancel_args {
    [[nodiscard]] friend bool operator==(const cancel_args&, const cancel_args&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<cancel_args> decode_cancel(const message_view& message) noexcept;

void encode(byte_writer& writer, const cancel_args& args) noexcept;

}  // namespace sluice::smb::wire

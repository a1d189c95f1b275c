#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// LOGOFF and its response, [MS-SMB2] 2.2.7 and 2.2.8. Their body is empty.
struct logoff_args {
    [[nodiscard]] friend bool operator==(const logoff_args&, const logoff_args&) noexcept = default;
};
struct logoff_reply {
    [[nodiscard]] friend bool operator==(const logoff_reply&, const logoff_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<logoff_args> decode_logoff(const message_view& message) noexcept;
[[nodiscard]] decoded<logoff_reply> decode_logoff_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const logoff_args& args) noexcept;
void encode(byte_writer& writer, const logoff_reply& reply) noexcept;

}  // namespace sluice::smb::wire

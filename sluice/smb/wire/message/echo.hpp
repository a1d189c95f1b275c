#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// ECHO and its response, [MS-SMB2] 2.2.28 and 2.2.29. Their body is empty.
struct echo_args {
    [[nodiscard]] friend bool operator==(const echo_args&, const echo_args&) noexcept = default;
};
struct echo_reply {
    [[nodiscard]] friend bool operator==(const echo_reply&, const echo_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<echo_args> decode_echo(const message_view& message) noexcept;
[[nodiscard]] decoded<echo_reply> decode_echo_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const echo_args& args) noexcept;
void encode(byte_writer& writer, const echo_reply& reply) noexcept;

}  // namespace sluice::smb::wire

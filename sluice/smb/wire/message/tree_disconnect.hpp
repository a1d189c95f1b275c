#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// TREE_DISCONNECT and its response, [MS-SMB2] 2.2.11 and 2.2.12. Their body is empty.
struct tree_disconnect_args {
    [[nodiscard]] friend bool operator==(const tree_disconnect_args&,
                                         const tree_disconnect_args&) noexcept = default;
};
struct tree_disconnect_reply {
    [[nodiscard]] friend bool operator==(const tree_disconnect_reply&,
                                         const tree_disconnect_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<tree_disconnect_args> decode_tree_disconnect(const message_view& message) noexcept;
[[nodiscard]] decoded<tree_disconnect_reply> decode_tree_disconnect_reply(
    const message_view& message) noexcept;

void encode(byte_writer& writer, const tree_disconnect_args& args) noexcept;
void encode(byte_writer& writer, const tree_disconnect_reply& reply) noexcept;

}  // namespace sluice::smb::wire

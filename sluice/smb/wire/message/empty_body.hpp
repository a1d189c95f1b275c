#pragma once

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {

/// The body of messages without content other than their header: LOGOFF, TREE_DISCONNECT, CANCEL,
/// ECHO and most of their responses.
struct empty_body {
    le16 structure_size;  // 0  always 4
    le16 reserved;        // 2
};
static_assert(sizeof(empty_body) == 4 and wire_type<empty_body>);

/// Returns an `Args`, which has no members, if the body is empty. Errors: `truncated`,
/// `bad_structure_size`.
template <class Args>
[[nodiscard]] decoded<Args> decode_empty_body(const message_view& message) noexcept {
    const auto body = take_body<empty_body>(message, sizeof(empty_body));
    if (!body) return std::unexpected(body.error());
    return Args{};
}

inline void encode_empty_body(byte_writer& writer) noexcept {
    writer.put(empty_body{.structure_size = le16(sizeof(empty_body)), .reserved = {}});
}

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {

/// The body of responses that contain only a buffer: QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO.
struct output_body {
    le16 structure_size;  // 0  always 9
    le16 offset;          // 2
    le32 length;          // 4
};
static_assert(sizeof(output_body) == 8 and wire_type<output_body>);
static_assert(offsetof(output_body, offset) == 2 and offsetof(output_body, length) == 4);

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`.
[[nodiscard]] inline decoded<bytes_view> decode_output_body(const message_view& message) noexcept {
    const auto body = take_body<output_body>(message, 9);
    if (!body) return std::unexpected(body.error());
    return variable_part<output_body>(message,
                                      {.offset = body->offset.value(), .length = body->length.value()});
}

/// Writes the body up to the buffer, which the caller sends separately.
inline void encode_output_body_head(byte_writer& writer, std::size_t output_bytes) noexcept {
    writer.put(output_body{.structure_size = le16(9),
                           .offset = narrow<le16>(writer.position() + sizeof(output_body)),
                           .length = narrow<le32>(output_bytes)});
}

inline void encode_output_body(byte_writer& writer, bytes_view output) noexcept {
    encode_output_body_head(writer, output.size());
    writer.put_bytes(output);
}

/// The offset of the buffer in such a response as encoded here, from its SMB2 header.
inline constexpr std::size_t output_body_data_offset = header_bytes + sizeof(output_body);

}  // namespace sluice::smb::wire

#pragma once

#include <concepts>
#include <limits>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/message/header.hpp"

// Functions that the decoders and encoders of bodies share.

namespace sluice::smb::wire {

/// Decodes the fixed part of a body. Its first field, StructureSize, distinguishes it from other
/// layouts.
/// Errors: `truncated`, `bad_structure_size`.
template <wire_type Body>
[[nodiscard]] decoded<Body> take_body(const message_view& message, std::uint16_t structure_size) noexcept {
    const auto body = message.body().take<Body>();
    if (!body) return std::unexpected(decode_error::truncated);
    if (body->structure_size.value() != structure_size) {
        return std::unexpected(decode_error::bad_structure_size);
    }
    return *body;
}

/// Returns the bytes after the fixed part that `extent` describes. Its offset counts from the SMB2
/// header. An empty range may have any offset, because Windows sends and accepts that. Errors:
/// `range_outside_message`, also for a range that begins within the fixed part.
template <wire_type Body>
[[nodiscard]] decoded<bytes_view> variable_part(const message_view& message, byte_extent extent) noexcept {
    if (extent.length == 0) return bytes_view{};
    if (extent.offset < header_bytes + sizeof(Body)) {
        return std::unexpected(decode_error::range_outside_message);
    }
    const auto part = message.slice(extent);
    if (!part) return std::unexpected(decode_error::range_outside_message);
    return *part;
}

/// The same for UTF-16 text. Errors: also `bad_text`, for an odd number of bytes.
template <wire_type Body>
[[nodiscard]] decoded<bytes_view> text_part(const message_view& message, byte_extent extent) noexcept {
    if (extent.length % 2 != 0) return std::unexpected(decode_error::bad_text);
    return variable_part<Body>(message, extent);
}

/// Converts `number` to a field of the wire. A number that does not fit is an error of the caller.
template <class Field>
[[nodiscard]] constexpr Field narrow(std::unsigned_integral auto number) noexcept {
    ENSURE(number <= std::numeric_limits<typename Field::value_type>::max(), "too long for its length field");
    return Field(static_cast<typename Field::value_type>(number));
}

/// Writes `bytes`, or a zero if they are empty. Many requests claim at least one byte in their
/// variable part, and servers (Samba) require it.
inline void put_at_least_one_byte(byte_writer& writer, bytes_view bytes) noexcept {
    if (bytes.empty()) {
        writer.put_zeros(1);
    } else {
        writer.put_bytes(bytes);
    }
}

}  // namespace sluice::smb::wire

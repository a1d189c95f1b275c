#pragma once

#include <expected>
#include <string_view>

namespace sluice::smb::wire {

/// The rule that the bytes of a message violate. A server answers any violation with
/// STATUS_INVALID_PARAMETER or closes the connection. The rule itself is for logs and tests.
enum class decode_error {
    truncated,              ///< ends within a fixed part
    bad_protocol_id,        ///< does not begin with the identifier of this kind of message
    bad_structure_size,     ///< the StructureSize field does not have the value of this message
    range_outside_message,  ///< an offset and length name bytes outside the variable part
    misaligned,             ///< is at an address that the format forbids, or would place
                            ///< its successor at one
    bad_chain,              ///< the next element of a list would begin inside this one
    too_long,               ///< longer than the caller or the format allows
    too_many,               ///< more elements than the caller or the format allows
    missing,                ///< a mandatory part is absent
    duplicate,              ///< a part that may occur once occurs twice
    bad_value,              ///< a field has a value that its specification excludes
    bad_text,               ///< UTF-16 of an odd number of bytes, or text that is not UTF-8
    unsupported,            ///< well-formed as far as read, but of an unsupported kind
                            ///< (a compressed message)
};

/// Returns the name, as in "range_outside_message". Allocates: nothing.
[[nodiscard]] std::string_view name_of(decode_error error) noexcept;

/// The result of a decoder: checked arguments, or the first rule that the bytes violate.
template <class T>
using decoded = std::expected<T, decode_error>;

}  // namespace sluice::smb::wire

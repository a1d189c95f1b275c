#pragma once

#include <expected>
#include <string_view>

namespace sluice::smb::wire {

/// Which rule the bytes of a message broke. A server answers any of them with STATUS_INVALID_PARAMETER or
/// closes the connection; the rule is for logs and tests.
enum class decode_error {
    truncated,              ///< ends within a fixed part
    bad_protocol_id,        ///< does not begin as this kind of message does
    bad_structure_size,     ///< the StructureSize field is not the one of this message
    range_outside_message,  ///< an offset and length name bytes outside the variable part
    misaligned,             ///< stands, or would have its successor stand, at an address the format forbids
    bad_chain,              ///< the next element of a list would begin inside this one
    too_long,               ///< longer than the caller or the format allows
    too_many,               ///< more elements than the caller or the format allows
    missing,                ///< a part that must be there is not
    duplicate,              ///< a part that may be there once is there twice
    bad_value,              ///< a field has a value its specification excludes
    bad_text,               ///< UTF-16 of an odd number of bytes, or text that is not UTF-8
    unsupported,            ///< well-formed as far as read, of a kind we do not take (a compressed message)
};

/// "range_outside_message". Allocates: nothing.
[[nodiscard]] std::string_view name_of(decode_error error) noexcept;

/// What a decoder returns: checked arguments, or the first rule that was broken.
template <class T>
using decoded = std::expected<T, decode_error>;

}  // namespace sluice::smb::wire

#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"

// The subset of DER (ITU-T X.690) that SPNEGO tokens need: nested values of definite length.

namespace sluice::smb::auth::der {

enum class tag : std::uint8_t {
    octet_string = 0x04,
    object_identifier = 0x06,
    enumerated = 0x0a,
    sequence = 0x30,
    application_0 = 0x60,  // the first tag of a GSS-API token
    context_0 = 0xa0,      // the members of a SEQUENCE, by number
    context_1 = 0xa1,
    context_2 = 0xa2,
    context_3 = 0xa3,
    context_4 = 0xa4,
};

/// A parser of consecutive values. As with the byte reader, a failed step consumes nothing. Thread
/// safety: a value. Allocates: nothing.
class reader {
public:
    explicit reader(bytes_view values) noexcept : bytes_(values) {}

    [[nodiscard]] bool at_end() const noexcept { return bytes_.remaining() == 0; }

    /// Returns whether the next value has that tag.
    [[nodiscard]] bool next_is(tag expected) const noexcept;

    /// Returns the contents of the next value, if it has that tag and lies within the bytes. A
    /// length need not have the shortest encoding, because some clients use longer ones. An
    /// indefinite length is rejected.
    [[nodiscard]] std::optional<bytes_view> take(tag expected) noexcept;

    /// Returns the next value with its header, for any tag.
    [[nodiscard]] std::optional<bytes_view> take_whole() noexcept;

private:
    byte_reader bytes_;
};

/// Returns the contents of the only value in `bytes`.
[[nodiscard]] std::optional<bytes_view> only(bytes_view bytes, tag expected) noexcept;

/// Encodes a value with the concatenated `parts`. Allocates: the bytes.
[[nodiscard]] std::vector<std::byte> make(tag kind, std::initializer_list<bytes_view> parts);

}  // namespace sluice::smb::auth::der

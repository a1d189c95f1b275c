#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"

// The little of DER (ITU-T X.690) that SPNEGO tokens need: nested values of definite length.

namespace sluice::smb::auth::der {

enum class tag : std::uint8_t {
    octet_string = 0x04,
    object_identifier = 0x06,
    enumerated = 0x0a,
    sequence = 0x30,
    application_0 = 0x60,  // how a GSS-API token begins
    context_0 = 0xa0,      // the members of a SEQUENCE, by number
    context_1 = 0xa1,
    context_2 = 0xa2,
    context_3 = 0xa3,
    context_4 = 0xa4,
};

/// Takes values apart, one after another. Like the reader below it, a step that fails consumes nothing.
/// Thread safety: a value. Allocates: nothing.
class reader {
public:
    explicit reader(bytes_view values) noexcept : bytes_(values) {}

    [[nodiscard]] bool at_end() const noexcept { return bytes_.remaining() == 0; }

    /// Is that the tag of the next value?
    [[nodiscard]] bool next_is(tag expected) const noexcept;

    /// The contents of the next value, if it has that tag and lies within the bytes. A length need not be
    /// spelled as briefly as possible (some clients do not); one without an end is refused.
    [[nodiscard]] std::optional<bytes_view> take(tag expected) noexcept;

    /// The next value whatever its tag, header included.
    [[nodiscard]] std::optional<bytes_view> take_whole() noexcept;

private:
    byte_reader bytes_;
};

/// The contents of a value that is alone in `bytes`.
[[nodiscard]] std::optional<bytes_view> only(bytes_view bytes, tag expected) noexcept;

/// A value made of `parts`, one after another. Allocates: the bytes.
[[nodiscard]] std::vector<std::byte> make(tag kind, std::initializer_list<bytes_view> parts);

}  // namespace sluice::smb::auth::der

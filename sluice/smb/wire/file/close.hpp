#pragma once

#include "sluice/smb/wire/create/open_information.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class close_flags : std::uint16_t {
    none = 0,
    /// The response contains (in a request: is to contain) the attributes of the file.
    query_attributes = 1,
};
template <>
inline constexpr bool is_bit_flags<close_flags> = true;

/// CLOSE, [MS-SMB2] 2.2.15.
struct close_args {
    close_flags flags = close_flags::none;
    file_id file{};

    [[nodiscard]] friend bool operator==(const close_args&, const close_args&) noexcept = default;
};

/// CLOSE response, [MS-SMB2] 2.2.16.
struct close_reply {
    close_flags flags = close_flags::none;
    open_information information{};  ///< zero without `query_attributes`

    [[nodiscard]] friend bool operator==(const close_reply&, const close_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<close_args> decode_close(const message_view& message) noexcept;
[[nodiscard]] decoded<close_reply> decode_close_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const close_args& args) noexcept;
void encode(byte_writer& writer, const close_reply& reply) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/message/negotiate.hpp"

namespace sluice::smb::wire {

enum class session_setup_flags : std::uint8_t { none = 0, binding = 1 };
template <>
inline constexpr bool is_bit_flags<session_setup_flags> = true;

enum class session_flags : std::uint16_t { none = 0, guest = 1, anonymous = 2, encrypt_data = 4 };
template <>
inline constexpr bool is_bit_flags<session_flags> = true;

/// SESSION_SETUP, [MS-SMB2] 2.2.5.
struct session_setup_args {
    session_setup_flags flags = session_setup_flags::none;
    wire::security_mode security_mode = security_mode::none;  ///< one byte here
    wire::capabilities capabilities = capabilities::none;
    /// The session that this one replaces, after a lost connection.
    std::uint64_t previous_session_id = 0;
    bytes_view security_blob{};

    [[nodiscard]] friend bool operator==(const session_setup_args&,
                                         const session_setup_args&) noexcept = default;
};

/// SESSION_SETUP response, [MS-SMB2] 2.2.6.
struct session_setup_reply {
    session_flags flags = session_flags::none;
    bytes_view security_blob{};

    [[nodiscard]] friend bool operator==(const session_setup_reply&,
                                         const session_setup_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<session_setup_args> decode_session_setup(const message_view& message) noexcept;
[[nodiscard]] decoded<session_setup_reply> decode_session_setup_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const session_setup_args& args) noexcept;
void encode(byte_writer& writer, const session_setup_reply& reply) noexcept;

}  // namespace sluice::smb::wire

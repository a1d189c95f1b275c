#pragma once

#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/message/negotiate_contexts.hpp"

namespace sluice::smb::wire {

enum class dialect : std::uint16_t {
    smb_2_0_2 = 0x0202,
    smb_2_1 = 0x0210,
    smb_3_0 = 0x0300,
    smb_3_0_2 = 0x0302,
    smb_3_1_1 = 0x0311,
    smb_2_wildcard = 0x02ff,  ///< only as the answer to an SMB1 negotiate: "negotiate again"
};

enum class security_mode : std::uint16_t { none = 0, signing_enabled = 1, signing_required = 2 };
template <>
inline constexpr bool is_bit_flags<security_mode> = true;

/// [MS-SMB2] 2.2.3, of client or server.
enum class capabilities : std::uint32_t {
    none = 0,
    dfs = 0x01,
    leasing = 0x02,
    large_mtu = 0x04,
    multi_channel = 0x08,
    persistent_handles = 0x10,
    directory_leasing = 0x20,
    encryption = 0x40,
    notifications = 0x80,
};
template <>
inline constexpr bool is_bit_flags<capabilities> = true;

/// The largest number of dialects that is accepted.
inline constexpr std::size_t negotiate_dialects_max = 64;

/// NEGOTIATE, [MS-SMB2] 2.2.3.
struct negotiate_args {
    wire::security_mode security_mode = security_mode::none;
    wire::capabilities capabilities = capabilities::none;
    guid client_guid{};
    code_list<dialect> dialects{};
    negotiate_contexts contexts{};  ///< only if 3.1.1 is among the dialects

    [[nodiscard]] friend bool operator==(const negotiate_args&, const negotiate_args&) noexcept = default;
};

/// NEGOTIATE response, [MS-SMB2] 2.2.4.
struct negotiate_reply {
    wire::security_mode security_mode = security_mode::none;
    wire::dialect dialect = dialect::smb_2_0_2;
    guid server_guid{};
    wire::capabilities capabilities = capabilities::none;
    std::uint32_t transact_bytes_max = 0;
    std::uint32_t read_bytes_max = 0;
    std::uint32_t write_bytes_max = 0;
    filetime system_time{};
    filetime start_time{};  ///< zero from 3.1.1 on, and optionally before
    bytes_view security_blob{};
    negotiate_contexts contexts{};  ///< only if the dialect is 3.1.1

    [[nodiscard]] friend bool operator==(const negotiate_reply&, const negotiate_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `missing` (no dialect), `too_many`,
/// `range_outside_message`; for 3.1.1 those of decode_negotiate_contexts(). Allocates: nothing.
[[nodiscard]] decoded<negotiate_args> decode_negotiate(const message_view& message) noexcept;
[[nodiscard]] decoded<negotiate_reply> decode_negotiate_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const negotiate_args& args) noexcept;
void encode(byte_writer& writer, const negotiate_reply& reply) noexcept;

}  // namespace sluice::smb::wire

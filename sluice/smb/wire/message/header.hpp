#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::wire {

/// The command of a request or response, [MS-SMB2] 2.2.1.
enum class command : std::uint16_t {
    negotiate = 0x00,
    session_setup = 0x01,
    logoff = 0x02,
    tree_connect = 0x03,
    tree_disconnect = 0x04,
    create = 0x05,
    close = 0x06,
    flush = 0x07,
    read = 0x08,
    write = 0x09,
    lock = 0x0a,
    ioctl = 0x0b,
    cancel = 0x0c,
    echo = 0x0d,
    query_directory = 0x0e,
    change_notify = 0x0f,
    query_info = 0x10,
    set_info = 0x11,
    oplock_break = 0x12,
    server_to_client_notification = 0x13,
};

/// Returns the name, as in "query_directory"; "?" for a code without a name. Allocates: nothing.
[[nodiscard]] std::string_view name_of(command code) noexcept;

enum class header_flags : std::uint32_t {
    none = 0,
    response = 0x00000001,
    async = 0x00000002,
    related = 0x00000004,
    signed_message = 0x00000008,
    priority_mask = 0x00000070,
    dfs = 0x10000000,
    replay = 0x20000000,
};
template <>
inline constexpr bool is_bit_flags<header_flags> = true;

/// 16 bytes that authenticate the sender of a message. They are zero while the signature is
/// computed.
using message_signature = std::array<std::byte, 16>;

inline constexpr std::size_t header_bytes = 64;

/// The header of every SMB2 message, [MS-SMB2] 2.2.1.1 (async) and 2.2.1.2 (sync). The flags select
/// among fields that share a position. The others are zero.
struct header {
    std::uint16_t credit_charge = 0;
    nt_status status = nt_status::success;  ///< in a response
    std::uint16_t channel_sequence = 0;     ///< in a request, from 3.0 on
    wire::command command = command::negotiate;
    std::uint16_t credits = 0;  ///< requested by a request, granted by a response
    header_flags flags = header_flags::none;
    /// From this header to the next of the compound; 0 in the last.
    std::uint32_t next_command_bytes = 0;
    std::uint64_t message_id = 0;
    std::uint64_t async_id = 0;  ///< if `async`
    std::uint32_t tree_id = 0;   ///< if not `async`
    std::uint64_t session_id = 0;
    message_signature signature{};

    [[nodiscard]] friend bool operator==(const header&, const header&) noexcept = default;
};

/// The offsets of fields that are filled in after the rest of a message is known.
inline constexpr std::size_t header_credits_offset = 14;
inline constexpr std::size_t header_flags_offset = 16;
inline constexpr std::size_t header_next_command_offset = 20;
inline constexpr std::size_t header_signature_offset = 48;

/// Errors: `truncated`, `bad_protocol_id`, `bad_structure_size`. Allocates: nothing.
[[nodiscard]] decoded<header> decode_header(bytes_view message) noexcept;

void encode(byte_writer& writer, const header& header) noexcept;

/// One message: its bytes from the header to its end within a compound, padding included, and the
/// decoded header. The bytes outlive the view and everything decoded from it. Thread safety: a
/// value.
class message_view {
public:
    /// Errors: those of decode_header().
    [[nodiscard]] static decoded<message_view> of(bytes_view message) noexcept;

    [[nodiscard]] const wire::header& header() const noexcept { return header_; }
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }
    [[nodiscard]] bytes_view body() const noexcept {
        return {bytes_.data() + header_bytes, bytes_.size() - header_bytes};
    }
    /// Returns the part that `extent` describes. Its offset counts from the header, like all
    /// offsets in bodies. Returns std::nullopt if any byte of it is outside.
    [[nodiscard]] std::optional<bytes_view> slice(byte_extent extent) const noexcept {
        return bytes_.slice(extent);
    }

private:
    message_view(const wire::header& header, bytes_view bytes) noexcept : header_(header), bytes_(bytes) {}

    wire::header header_;
    bytes_view bytes_;
};

/// Returns the credit charge of a request that sends or requests at most `payload_bytes`: one per
/// 64 KiB or part thereof, at least one ([MS-SMB2] 3.1.5.2).
[[nodiscard]] constexpr std::uint64_t credit_charge_of(std::uint64_t payload_bytes) noexcept {
    return payload_bytes == 0 ? 1 : (payload_bytes - 1) / 65536 + 1;
}

}  // namespace sluice::smb::wire

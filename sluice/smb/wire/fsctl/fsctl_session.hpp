#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"

// The controls for connections, sessions and pipes. encode() and decode() as in
// fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// VALIDATE_NEGOTIATE_INFO request, [MS-SMB2] 2.2.31.4: the parameters of the client's NEGOTIATE,
/// now signed.
struct validate_negotiate_request {
    std::uint32_t capabilities = 0;
    guid client{};
    std::uint16_t security_mode = 0;
    std::vector<std::uint16_t> dialects{};
    [[nodiscard]] friend bool operator==(const validate_negotiate_request&,
                                         const validate_negotiate_request&) noexcept = default;
};
void encode(byte_writer& writer, const validate_negotiate_request& request) noexcept;
/// Errors: `truncated`, `too_many` above negotiate_dialects_max. Allocates: the dialects.
[[nodiscard]] decoded<validate_negotiate_request> decode_validate_negotiate_request(
    bytes_view bytes) noexcept;

/// The reply, [MS-SMB2] 2.2.32.6: the parameters of the server's NEGOTIATE response.
struct validate_negotiate_reply {
    std::uint32_t capabilities = 0;
    guid server{};
    std::uint16_t security_mode = 0;
    std::uint16_t dialect_revision = 0;
    [[nodiscard]] friend bool operator==(const validate_negotiate_reply&,
                                         const validate_negotiate_reply&) noexcept = default;
};
void encode(byte_writer& writer, const validate_negotiate_reply& reply) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<validate_negotiate_reply> decode_validate_negotiate_reply(bytes_view bytes) noexcept;

/// An address at which a further channel can reach the server, [MS-SMB2] 2.2.32.5.
struct network_interface {
    static constexpr std::uint32_t rss_capable = 0x01;
    static constexpr std::uint32_t rdma_capable = 0x02;

    std::uint32_t index = 0;
    std::uint32_t capability = 0;
    std::uint64_t link_speed_bits_per_second = 0;
    bool ipv6 = false;
    std::array<std::byte, 16> address{};  ///< in network order; IPv4 uses the first four bytes
    [[nodiscard]] friend bool operator==(const network_interface&,
                                         const network_interface&) noexcept = default;
};
/// Encodes the reply of QUERY_NETWORK_INTERFACE_INFO: a chain of interfaces.
void encode_network_interfaces(byte_writer& writer,
                               const std::vector<network_interface>& interfaces) noexcept;
/// Decodes such a reply and skips addresses of other families.
/// Errors: `truncated`, `bad_chain`. Allocates: the list.
[[nodiscard]] decoded<std::vector<network_interface>> decode_network_interfaces(bytes_view bytes) noexcept;

/// LMR_REQUEST_RESILIENCY, [MS-SMB2] 2.2.31.3: preserves the open across a disconnection for a
/// limited time.
struct resiliency_request {
    std::uint32_t timeout_ms = 0;
    [[nodiscard]] friend bool operator==(const resiliency_request&,
                                         const resiliency_request&) noexcept = default;
};
void encode(byte_writer& writer, const resiliency_request& request) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<resiliency_request> decode_resiliency_request(bytes_view bytes) noexcept;

/// FSCTL_PIPE_WAIT, [MS-FSCC] 2.3: waits until a server listens at a pipe.
struct pipe_wait_request {
    /// In units of 100 ns; std::nullopt: the server's default.
    std::optional<std::uint64_t> timeout_ticks{};
    std::string name{};
    [[nodiscard]] friend bool operator==(const pipe_wait_request&,
                                         const pipe_wait_request&) noexcept = default;
};
/// Errors: `bad_text`.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const pipe_wait_request& request) noexcept;
/// Errors: `truncated`, `range_outside_message`, `bad_text`. Allocates: the name.
[[nodiscard]] decoded<pipe_wait_request> decode_pipe_wait_request(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

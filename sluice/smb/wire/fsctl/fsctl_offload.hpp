#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Offloaded copies: a token stands for the data of a range of a file, and is written to another
// range. encode() and decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// STORAGE_OFFLOAD_TOKEN, [MS-FSCC] 2.1.11. The server that made it gives its content a meaning.
struct offload_token {
    static constexpr std::size_t encoded_bytes = 512;
    static constexpr std::uint32_t type_zero_data = 0xffff0001;  ///< well known: zeros
    static constexpr std::uint32_t types_reserved = 0xffff0000;  ///< servers choose types below

    std::uint32_t type = 0;
    std::array<std::byte, 504> id{};
    [[nodiscard]] friend bool operator==(const offload_token&, const offload_token&) noexcept = default;
};

/// FSCTL_OFFLOAD_READ_INPUT, [MS-FSCC] 2.3.
struct offload_read_request {
    std::uint32_t lifetime_ms = 0;  ///< the token's; zero: the server chooses
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    [[nodiscard]] friend bool operator==(const offload_read_request&,
                                         const offload_read_request&) noexcept = default;
};
void encode(byte_writer& writer, const offload_read_request& request) noexcept;
/// Errors: `truncated`, `bad_structure_size`, `bad_value` for a range that ends beyond 2^63 - 1.
[[nodiscard]] decoded<offload_read_request> decode_offload_read_request(bytes_view bytes) noexcept;

/// FSCTL_OFFLOAD_READ_OUTPUT, [MS-FSCC] 2.3.
struct offload_read_reply {
    static constexpr std::size_t encoded_bytes = 528;

    std::uint32_t flags = 0;
    std::uint64_t length = 0;  ///< amount of data that the token stands for
    offload_token token{};
    [[nodiscard]] friend bool operator==(const offload_read_reply&,
                                         const offload_read_reply&) noexcept = default;
};
void encode(byte_writer& writer, const offload_read_reply& reply) noexcept;
/// Errors: `truncated`, `bad_structure_size`, `bad_value` for a token of another length.
[[nodiscard]] decoded<offload_read_reply> decode_offload_read_reply(bytes_view bytes) noexcept;

/// FSCTL_OFFLOAD_WRITE_INPUT, [MS-FSCC] 2.3.
struct offload_write_request {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t token_offset = 0;  ///< in the data of the token
    offload_token token{};
    [[nodiscard]] friend bool operator==(const offload_write_request&,
                                         const offload_write_request&) noexcept = default;
};
void encode(byte_writer& writer, const offload_write_request& request) noexcept;
/// A token may have any length in its length field: a server that did not make it rejects it in any
/// case. Errors: `truncated`, `bad_structure_size`, `bad_value` for a range that ends beyond 2^63 -
/// 1.
[[nodiscard]] decoded<offload_write_request> decode_offload_write_request(bytes_view bytes) noexcept;

/// FSCTL_OFFLOAD_WRITE_OUTPUT, [MS-FSCC] 2.3.
struct offload_write_reply {
    static constexpr std::size_t encoded_bytes = 16;

    std::uint64_t length = 0;  ///< written
    [[nodiscard]] friend bool operator==(const offload_write_reply&,
                                         const offload_write_reply&) noexcept = default;
};
void encode(byte_writer& writer, const offload_write_reply& reply) noexcept;
/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<offload_write_reply> decode_offload_write_reply(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/guid.hpp"

// Controls that read and set properties of a file. encode() and decode() as in
// fscc_file_metadata.hpp; a decoder without a comment fails with `truncated` only.

namespace sluice::smb::wire {

/// GET_COMPRESSION and SET_COMPRESSION, [MS-FSCC] 2.3.
struct compression_state {
    compression_format format = compression_format::none;
    [[nodiscard]] friend bool operator==(const compression_state&,
                                         const compression_state&) noexcept = default;
};
void encode(byte_writer& writer, const compression_state& state) noexcept;
/// Errors: also `bad_value` for a format without an enumerator.
[[nodiscard]] decoded<compression_state> decode_compression_state(bytes_view bytes) noexcept;

/// GET_INTEGRITY_INFORMATION reply, [MS-FSCC] 2.3. Algorithm 0 means "no checksums".
struct integrity_state {
    std::uint16_t checksum_algorithm = 0;
    std::uint32_t flags = 0;
    std::uint32_t checksum_chunk_bytes = 0;
    std::uint32_t cluster_bytes = 0;
    [[nodiscard]] friend bool operator==(const integrity_state&, const integrity_state&) noexcept = default;
};
void encode(byte_writer& writer, const integrity_state& state) noexcept;
[[nodiscard]] decoded<integrity_state> decode_integrity_state(bytes_view bytes) noexcept;

/// CREATE_OR_GET_OBJECT_ID reply, [MS-FSCC] 2.1: the file's identifier and its birth identifiers.
struct object_id {
    guid id{};
    std::array<guid, 3> birth_volume_object_and_domain{};
    [[nodiscard]] friend bool operator==(const object_id&, const object_id&) noexcept = default;
};
void encode(byte_writer& writer, const object_id& identifier) noexcept;
[[nodiscard]] decoded<object_id> decode_object_id(bytes_view bytes) noexcept;

/// MARK_HANDLE, [MS-FSCC] 2.3: which copy of the data the handle reads, on redundant storage.
struct mark_handle_request {
    static constexpr std::uint32_t read_copy = 0x80;
    static constexpr std::uint32_t not_read_copy = 0x100;

    std::uint32_t copy_number = 0;
    std::uint32_t handle_info = 0;
    [[nodiscard]] friend bool operator==(const mark_handle_request&,
                                         const mark_handle_request&) noexcept = default;
};
void encode(byte_writer& writer, const mark_handle_request& request) noexcept;
[[nodiscard]] decoded<mark_handle_request> decode_mark_handle_request(bytes_view bytes) noexcept;

/// FSCTL_PIPE_PEEK reply, [MS-FSCC] 2.3, before the peeked bytes.
struct pipe_peek_state {
    std::uint32_t state = 3;  ///< connected, as in pipe_local_information
    std::uint32_t readable_bytes = 0;
    std::uint32_t messages = 0;
    std::uint32_t first_message_bytes = 0;
    [[nodiscard]] friend bool operator==(const pipe_peek_state&, const pipe_peek_state&) noexcept = default;
};
void encode(byte_writer& writer, const pipe_peek_state& state) noexcept;
[[nodiscard]] decoded<pipe_peek_state> decode_pipe_peek_state(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/file_id.hpp"

// Server-side copies. encode() and decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// A key that identifies an open of the same server as the source of a copy, [MS-SMB2] 2.2.32.3. It
/// is opaque to the client.
using resume_key = std::array<std::byte, 24>;

/// Encodes an SRV_REQUEST_RESUME_KEY response, [MS-SMB2] 2.2.32.3.
void encode_resume_key(byte_writer& writer, const resume_key& key) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<resume_key> decode_resume_key(bytes_view bytes) noexcept;

/// A range to copy, [MS-SMB2] 2.2.31.1.1. The sums may overflow 64 bits.
struct copy_chunk {
    std::uint64_t source_offset = 0;
    std::uint64_t target_offset = 0;
    std::uint32_t length = 0;
    [[nodiscard]] friend bool operator==(const copy_chunk&, const copy_chunk&) noexcept = default;
};

/// The limits of Windows, which clients expect, [MS-SMB2] 3.3.3.
struct copy_chunk_limits {
    std::uint32_t chunks_max = 256;
    std::uint32_t chunk_bytes_max = 1 << 20;
    std::uint32_t total_bytes_max = 16 << 20;
};

/// SRV_COPYCHUNK request, [MS-SMB2] 2.2.31.1.
struct copy_chunk_request {
    resume_key source{};
    std::vector<copy_chunk> chunks{};
    [[nodiscard]] friend bool operator==(const copy_chunk_request&,
                                         const copy_chunk_request&) noexcept = default;
};
void encode(byte_writer& writer, const copy_chunk_request& request) noexcept;
/// Errors: `truncated`, `too_many` chunks (a server answers with its limits).
/// Allocates: the chunks.
[[nodiscard]] decoded<copy_chunk_request> decode_copy_chunk_request(bytes_view bytes,
                                                                    const copy_chunk_limits& limits) noexcept;

/// SRV_COPYCHUNK response, [MS-SMB2] 2.2.32.1. If a request exceeds the limits, the same fields
/// contain the limits.
struct copy_chunk_response {
    std::uint32_t chunks_written = 0;
    std::uint32_t chunk_bytes_written = 0;
    std::uint32_t total_bytes_written = 0;
    [[nodiscard]] friend bool operator==(const copy_chunk_response&,
                                         const copy_chunk_response&) noexcept = default;
};
void encode(byte_writer& writer, const copy_chunk_response& response) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<copy_chunk_response> decode_copy_chunk_response(bytes_view bytes) noexcept;

/// DUPLICATE_EXTENTS_DATA, [MS-FSCC] 2.3: shares the blocks of a range between two files.
struct duplicate_extents_request {
    file_id source{};
    std::uint64_t source_offset = 0;
    std::uint64_t target_offset = 0;
    std::uint64_t byte_count = 0;
    [[nodiscard]] friend bool operator==(const duplicate_extents_request&,
                                         const duplicate_extents_request&) noexcept = default;
};
void encode(byte_writer& writer, const duplicate_extents_request& request) noexcept;
/// Errors: `truncated`, `bad_value` for an offset or count above 2^63 - 1.
[[nodiscard]] decoded<duplicate_extents_request> decode_duplicate_extents_request(bytes_view bytes) noexcept;

/// DUPLICATE_EXTENTS_DATA_EX, [MS-FSCC] 2.3.
struct duplicate_extents_ex_request {
    static constexpr std::uint32_t source_atomic = 0x01;

    duplicate_extents_request range{};
    std::uint32_t flags = 0;
    [[nodiscard]] friend bool operator==(const duplicate_extents_ex_request&,
                                         const duplicate_extents_ex_request&) noexcept = default;
};
void encode(byte_writer& writer, const duplicate_extents_ex_request& request) noexcept;
/// Errors: `truncated`, `bad_structure_size`, `bad_value` as above.
[[nodiscard]] decoded<duplicate_extents_ex_request> decode_duplicate_extents_ex_request(
    bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

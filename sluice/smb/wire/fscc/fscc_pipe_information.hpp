#pragma once

#include <cstdint>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::wire {

/// FilePipeInformation, [MS-FSCC] 2.4. Modes without an enumerator are `bad_value`.
struct pipe_information {
    enum class read_mode : std::uint32_t { byte_stream = 0, message = 1 };
    enum class completion_mode : std::uint32_t { queue = 0, complete = 1 };

    read_mode reads = read_mode::message;
    completion_mode completion = completion_mode::queue;
    [[nodiscard]] friend bool operator==(const pipe_information&, const pipe_information&) noexcept = default;
};
void encode(byte_writer& writer, const pipe_information& information) noexcept;
/// Errors: `truncated`, `bad_value`.
[[nodiscard]] decoded<pipe_information> decode_pipe_information(bytes_view bytes) noexcept;

/// FilePipeLocalInformation, [MS-FSCC] 2.4, with the numbers of the wire. The default is a message
/// pipe seen from the client's end.
struct pipe_local_information {
    std::uint32_t type = 1;           ///< 0 stream, 1 message
    std::uint32_t configuration = 2;  ///< 0 inbound, 1 outbound, 2 full duplex
    std::uint32_t instances_max = 0xFFFFFFFF;
    std::uint32_t instances = 1;
    std::uint32_t inbound_quota_bytes = 0;
    std::uint32_t readable_bytes = 0;
    std::uint32_t outbound_quota_bytes = 0;
    std::uint32_t writable_bytes = 0;
    std::uint32_t state = 3;  ///< 1 disconnected, 2 listening, 3 connected, 4 closing
    std::uint32_t end = 0;    ///< 0 the client's, 1 the server's
    [[nodiscard]] friend bool operator==(const pipe_local_information&,
                                         const pipe_local_information&) noexcept = default;
};
void encode(byte_writer& writer, const pipe_local_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<pipe_local_information> decode_pipe_local_information(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

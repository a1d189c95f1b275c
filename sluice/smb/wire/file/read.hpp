#pragma once

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/file/io_channel.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class read_flags : std::uint8_t { none = 0, unbuffered = 1, request_compressed = 2 };
template <>
inline constexpr bool is_bit_flags<read_flags> = true;

/// READ, [MS-SMB2] 2.2.19.
struct read_args {
    file_id file{};
    std::uint64_t offset_bytes = 0;
    std::uint32_t length_bytes = 0;
    std::uint32_t minimum_bytes = 0;  ///< a shorter read is an error
    std::uint8_t padding = 0;         ///< preferred position of the data in the response; a hint
    read_flags flags = read_flags::none;
    io_channel channel = io_channel::none;
    std::uint32_t remaining_bytes = 0;  ///< amount that the client intends to read next; a hint
    bytes_view channel_info{};

    [[nodiscard]] friend bool operator==(const read_args&, const read_args&) noexcept = default;
};

/// READ response, [MS-SMB2] 2.2.20.
struct read_reply {
    bytes_view data{};
    std::uint32_t remaining_bytes = 0;  ///< sent by RDMA
    std::uint32_t flags = 0;

    [[nodiscard]] friend bool operator==(const read_reply&, const read_reply&) noexcept = default;
};

/// The offset of the data in a READ response as encoded here, from its SMB2 header.
inline constexpr std::size_t read_reply_data_offset = header_bytes + 16;

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<read_args> decode_read(const message_view& message) noexcept;
[[nodiscard]] decoded<read_reply> decode_read_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const read_args& args) noexcept;
void encode(byte_writer& writer, const read_reply& reply) noexcept;

/// Writes the body of a response up to its data, `data_bytes` long, which the caller sends without
/// copying.
void encode_read_reply_head(byte_writer& writer, std::size_t data_bytes) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/file/io_channel.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class write_flags : std::uint32_t { none = 0, write_through = 1, unbuffered = 2 };
template <>
inline constexpr bool is_bit_flags<write_flags> = true;

/// WRITE, [MS-SMB2] 2.2.21.
struct write_args {
    file_id file{};
    std::uint64_t offset_bytes = 0;
    write_flags flags = write_flags::none;
    io_channel channel = io_channel::none;
    /// RDMA: number of data bytes; otherwise a hint of later writes.
    std::uint32_t remaining_bytes = 0;
    bytes_view channel_info{};
    bytes_view data{};

    [[nodiscard]] friend bool operator==(const write_args&, const write_args&) noexcept = default;
};

/// WRITE response, [MS-SMB2] 2.2.22.
struct write_reply {
    std::uint32_t count_bytes = 0;

    [[nodiscard]] friend bool operator==(const write_reply&, const write_reply&) noexcept = default;
};

/// The largest offset of the data from the SMB2 header that is accepted, [MS-SMB2] 3.3.5.13.
inline constexpr std::size_t write_data_offset_max = 0x100;

/// The fixed part of a WRITE. It is enough to locate data that are received into a separate buffer.
inline constexpr std::size_t write_request_fixed_bytes = header_bytes + 48;

/// Errors: `truncated`, `bad_structure_size`, `bad_value` (DataOffset),
/// `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<write_args> decode_write(const message_view& message) noexcept;
[[nodiscard]] decoded<write_reply> decode_write_reply(const message_view& message) noexcept;

/// Writes the request. Channel information, if any, is stored after the data, which are then less
/// than 64 KiB.
void encode(byte_writer& writer, const write_args& args) noexcept;
void encode(byte_writer& writer, const write_reply& reply) noexcept;

/// Writes the body of a request up to its data, `data_bytes` long, which the caller sends without
/// copying. Ignores `args.data`.
void encode_write_request_head(byte_writer& writer, const write_args& args, std::size_t data_bytes) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// FLUSH, [MS-SMB2] 2.2.17.
struct flush_args {
    /// Apple's clients request F_FULLFSYNC with 0xffff in a reserved field, if AAPL announced that
    /// the volume supports it.
    std::uint16_t reserved = 0;
    file_id file{};

    [[nodiscard]] friend bool operator==(const flush_args&, const flush_args&) noexcept = default;
};

/// FLUSH response, [MS-SMB2] 2.2.18.
struct flush_reply {
    [[nodiscard]] friend bool operator==(const flush_reply&, const flush_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`.
[[nodiscard]] decoded<flush_args> decode_flush(const message_view& message) noexcept;
[[nodiscard]] decoded<flush_reply> decode_flush_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const flush_args& args) noexcept;
void encode(byte_writer& writer, const flush_reply& reply) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// SET_INFO, [MS-SMB2] 2.2.39.
struct set_info_args {
    info_type type = info_type::file;
    std::uint8_t information_class = 0;        ///< [MS-FSCC] 2.4 or 2.5; zero
                                               ///< for security and quota
    std::uint32_t additional_information = 0;  ///< for security: the parts that are set
    file_id file{};
    bytes_view input{};

    [[nodiscard]] friend bool operator==(const set_info_args&, const set_info_args&) noexcept = default;
};

/// SET_INFO response, [MS-SMB2] 2.2.40: two bytes, the shortest body of all.
struct set_info_reply {
    [[nodiscard]] friend bool operator==(const set_info_reply&, const set_info_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<set_info_args> decode_set_info(const message_view& message) noexcept;
[[nodiscard]] decoded<set_info_reply> decode_set_info_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const set_info_args& args) noexcept;
void encode(byte_writer& writer, const set_info_reply& reply) noexcept;

}  // namespace sluice::smb::wire

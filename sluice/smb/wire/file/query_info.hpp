#pragma once

#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// The order in which extended attributes are returned.
enum class query_info_flags : std::uint32_t {
    none = 0,
    restart_scan = 1,
    return_single_entry = 2,
    index_specified = 4,
};
template <>
inline constexpr bool is_bit_flags<query_info_flags> = true;

/// QUERY_INFO, [MS-SMB2] 2.2.37.
struct query_info_args {
    info_type type = info_type::file;
    std::uint8_t information_class = 0;  ///< [MS-FSCC] 2.4 or 2.5; zero for security and quota
    std::uint32_t output_bytes_max = 0;
    /// For security: the requested parts. For extended attributes: the index of the first.
    std::uint32_t additional_information = 0;
    query_info_flags flags = query_info_flags::none;
    file_id file{};
    bytes_view input{};  ///< names of extended attributes, or SIDs for quota

    [[nodiscard]] friend bool operator==(const query_info_args&, const query_info_args&) noexcept = default;
};

/// QUERY_INFO response, [MS-SMB2] 2.2.38.
struct query_info_reply {
    bytes_view output{};

    [[nodiscard]] friend bool operator==(const query_info_reply&, const query_info_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<query_info_args> decode_query_info(const message_view& message) noexcept;
[[nodiscard]] decoded<query_info_reply> decode_query_info_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const query_info_args& args) noexcept;
void encode(byte_writer& writer, const query_info_reply& reply) noexcept;

}  // namespace sluice::smb::wire

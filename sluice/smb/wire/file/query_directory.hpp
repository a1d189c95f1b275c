#pragma once

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// The information that is returned for each entry, [MS-FSCC] 2.4.
enum class directory_class : std::uint8_t {
    directory = 1,
    full_directory = 2,
    both_directory = 3,
    names = 12,
    id_both_directory = 37,
    id_full_directory = 38,
    id_extd_directory = 60,
    posix = 100,  ///< POSIX extensions
};

enum class query_directory_flags : std::uint8_t {
    none = 0,
    restart_scans = 0x01,
    return_single_entry = 0x02,
    index_specified = 0x04,
    reopen = 0x10,
};
template <>
inline constexpr bool is_bit_flags<query_directory_flags> = true;

/// QUERY_DIRECTORY, [MS-SMB2] 2.2.33.
struct query_directory_args {
    directory_class information_class = directory_class::both_directory;
    query_directory_flags flags = query_directory_flags::none;
    std::uint32_t file_index = 0;
    file_id file{};
    bytes_view pattern{};  ///< UTF-16LE
    std::uint32_t output_bytes_max = 0;

    [[nodiscard]] friend bool operator==(const query_directory_args&,
                                         const query_directory_args&) noexcept = default;
};

/// QUERY_DIRECTORY response, [MS-SMB2] 2.2.34: a list of entries of the requested class.
struct query_directory_reply {
    bytes_view entries{};

    [[nodiscard]] friend bool operator==(const query_directory_reply&,
                                         const query_directory_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`,
/// `bad_text`. Allocates: nothing.
[[nodiscard]] decoded<query_directory_args> decode_query_directory(const message_view& message) noexcept;
[[nodiscard]] decoded<query_directory_reply> decode_query_directory_reply(
    const message_view& message) noexcept;

void encode(byte_writer& writer, const query_directory_args& args) noexcept;
void encode(byte_writer& writer, const query_directory_reply& reply) noexcept;

}  // namespace sluice::smb::wire

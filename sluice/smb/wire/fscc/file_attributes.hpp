#pragma once

#include <cstdint>

#include "sluice/smb/wire/bit_flags.hpp"

namespace sluice::smb::wire {

/// FILE_ATTRIBUTE_*, [MS-FSCC] 2.6.
enum class file_attributes : std::uint32_t {
    none = 0,
    read_only = 0x00000001,
    hidden = 0x00000002,
    system = 0x00000004,
    directory = 0x00000010,
    archive = 0x00000020,
    normal = 0x00000080,  ///< "no other attribute", so that zero can mean "leave unchanged"
    temporary = 0x00000100,
    sparse_file = 0x00000200,
    reparse_point = 0x00000400,
    compressed = 0x00000800,
    offline = 0x00001000,
    not_content_indexed = 0x00002000,
    encrypted = 0x00004000,
    integrity_stream = 0x00008000,
    no_scrub_data = 0x00020000,
    recall_on_open = 0x00040000,
    pinned = 0x00080000,
    unpinned = 0x00100000,
    recall_on_data_access = 0x00400000,
};
template <>
inline constexpr bool is_bit_flags<file_attributes> = true;

}  // namespace sluice::smb::wire

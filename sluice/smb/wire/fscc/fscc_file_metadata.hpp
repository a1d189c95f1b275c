#pragma once

#include <cstdint>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"

// The information classes with times, sizes and attributes. Throughout the fscc files, encode()
// writes one structure; overflow is recorded in the writer. decode() decodes the structure at the
// front of the bytes and accepts further bytes, as servers must. Neither allocates unless its
// comment states it. Thread safety: values and functions of their arguments.

namespace sluice::smb::wire {

/// FileBasicInformation, [MS-FSCC] 2.4. In SET_INFO, a time of 0 means "leave unchanged", -1 "stop
/// automatic updates", -2 "resume automatic updates"; attributes of 0 mean "leave unchanged".
struct basic_information {
    filetime created{};
    filetime accessed{};
    filetime written{};
    filetime changed{};
    file_attributes attributes = file_attributes::none;

    [[nodiscard]] friend bool operator==(const basic_information&,
                                         const basic_information&) noexcept = default;
};
void encode(byte_writer& writer, const basic_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<basic_information> decode_basic_information(bytes_view bytes) noexcept;

/// FileStandardInformation, [MS-FSCC] 2.4.
struct standard_information {
    std::uint64_t allocation_bytes = 0;
    std::uint64_t end_of_file = 0;
    std::uint32_t links = 0;
    bool delete_pending = false;
    bool directory = false;

    [[nodiscard]] friend bool operator==(const standard_information&,
                                         const standard_information&) noexcept = default;
};
void encode(byte_writer& writer, const standard_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<standard_information> decode_standard_information(bytes_view bytes) noexcept;

/// FileNetworkOpenInformation, [MS-FSCC] 2.4.
struct network_open_information {
    filetime created{};
    filetime accessed{};
    filetime written{};
    filetime changed{};
    std::uint64_t allocation_bytes = 0;
    std::uint64_t end_of_file = 0;
    file_attributes attributes = file_attributes::none;

    [[nodiscard]] friend bool operator==(const network_open_information&,
                                         const network_open_information&) noexcept = default;
};
void encode(byte_writer& writer, const network_open_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<network_open_information> decode_network_open_information(bytes_view bytes) noexcept;

/// FileAttributeTagInformation, [MS-FSCC] 2.4. The tag is 0 unless the file is a reparse point.
struct attribute_tag_information {
    file_attributes attributes = file_attributes::none;
    std::uint32_t reparse_tag = 0;

    [[nodiscard]] friend bool operator==(const attribute_tag_information&,
                                         const attribute_tag_information&) noexcept = default;
};
void encode(byte_writer& writer, const attribute_tag_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<attribute_tag_information> decode_attribute_tag_information(bytes_view bytes) noexcept;

/// COMPRESSION_FORMAT_*, [MS-FSCC] 2.3. A set request may also contain unknown formats.
enum class compression_format : std::uint16_t { none = 0, preferred = 1, lznt1 = 2 };

/// FileCompressionInformation, [MS-FSCC] 2.4.
struct compression_information {
    std::uint64_t compressed_bytes = 0;
    compression_format format = compression_format::none;
    std::uint8_t unit_shift = 0;
    std::uint8_t chunk_shift = 0;
    std::uint8_t cluster_shift = 0;

    [[nodiscard]] friend bool operator==(const compression_information&,
                                         const compression_information&) noexcept = default;
};
void encode(byte_writer& writer, const compression_information& information) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<compression_information> decode_compression_information(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

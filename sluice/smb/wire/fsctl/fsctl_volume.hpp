#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

// Controls that describe a volume of NTFS, and a file as its change journal does. encode() and
// decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// NTFS_VOLUME_DATA_BUFFER, [MS-FSCC] 2.3. The fields about the master file table are zero.
struct ntfs_volume_data {
    std::uint64_t serial_number = 0;
    std::uint64_t sectors = 0;
    std::uint64_t total_clusters = 0;
    std::uint64_t free_clusters = 0;
    std::uint32_t sector_bytes = 0;
    std::uint32_t cluster_bytes = 0;
    [[nodiscard]] friend bool operator==(const ntfs_volume_data&, const ntfs_volume_data&) noexcept = default;
};
inline constexpr std::size_t ntfs_volume_data_bytes = 96;
void encode(byte_writer& writer, const ntfs_volume_data& data) noexcept;
/// Errors: `truncated`.
[[nodiscard]] decoded<ntfs_volume_data> decode_ntfs_volume_data(bytes_view bytes) noexcept;

/// READ_FILE_USN_DATA, [MS-FSCC] 2.3: the versions of the record that the client understands.
/// Without a buffer, only version 2.
struct read_usn_request {
    std::uint16_t version_min = 2;
    std::uint16_t version_max = 2;
    [[nodiscard]] friend bool operator==(const read_usn_request&, const read_usn_request&) noexcept = default;
};
void encode(byte_writer& writer, const read_usn_request& request) noexcept;
/// Errors: `truncated`, `bad_value` for a range that is empty.
[[nodiscard]] decoded<read_usn_request> decode_read_usn_request(bytes_view bytes) noexcept;

/// USN_RECORD_V2 and USN_RECORD_V3, [MS-FSCC] 2.3, of a volume without a change journal: no change
/// has a number, a time or a reason. Version 2 has the lower 64 bits of the file numbers.
struct usn_record {
    bool is_version_3 = false;
    file_number_128 file{};
    file_number_128 directory{};
    file_attributes attributes = file_attributes::none;
    std::string name{};
    [[nodiscard]] friend bool operator==(const usn_record&, const usn_record&) noexcept = default;
};
/// Returns the length of a record. Errors: `bad_text`; `too_long` for a name of more than 65,535
/// bytes.
[[nodiscard]] decoded<std::size_t> usn_record_bytes(const usn_record& record) noexcept;
/// Errors: as usn_record_bytes; then nothing is written.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const usn_record& record) noexcept;
/// Errors: `truncated`, `bad_value` (another version), `range_outside_message` for a name outside
/// the record, `bad_text`. Allocates: the name.
[[nodiscard]] decoded<usn_record> decode_usn_record(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

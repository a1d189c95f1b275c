#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

// The information classes of one or two numbers. Each has its own type, so that an end of file
// cannot be set as an allocation size. encode() and decode() as in fscc_file_metadata.hpp. Decoders
// fail with `truncated` only, except where stated.

namespace sluice::smb::wire {

/// FileInternalInformation, [MS-FSCC] 2.4: the number of the file on its volume.
struct internal_information {
    std::uint64_t file_number = 0;
    [[nodiscard]] friend bool operator==(const internal_information&,
                                         const internal_information&) noexcept = default;
};
void encode(byte_writer& writer, const internal_information& information) noexcept;
[[nodiscard]] decoded<internal_information> decode_internal_information(bytes_view bytes) noexcept;

/// FileEaInformation, [MS-FSCC] 2.4.
struct ea_information {
    std::uint32_t ea_bytes = 0;
    [[nodiscard]] friend bool operator==(const ea_information&, const ea_information&) noexcept = default;
};
void encode(byte_writer& writer, const ea_information& information) noexcept;
[[nodiscard]] decoded<ea_information> decode_ea_information(bytes_view bytes) noexcept;

/// FileAccessInformation, [MS-FSCC] 2.4.
struct access_information {
    access_mask granted = access_mask::none;
    [[nodiscard]] friend bool operator==(const access_information&,
                                         const access_information&) noexcept = default;
};
void encode(byte_writer& writer, const access_information& information) noexcept;
[[nodiscard]] decoded<access_information> decode_access_information(bytes_view bytes) noexcept;

/// FilePositionInformation, [MS-FSCC] 2.4. A position the protocol excludes (above 2^63 - 1) is
/// `bad_value`.
struct position_information {
    std::uint64_t offset = 0;
    [[nodiscard]] friend bool operator==(const position_information&,
                                         const position_information&) noexcept = default;
};
void encode(byte_writer& writer, const position_information& information) noexcept;
[[nodiscard]] decoded<position_information> decode_position_information(bytes_view bytes) noexcept;

/// FileModeInformation, [MS-FSCC] 2.4: create options of the open, as bits.
struct mode_information {
    std::uint32_t mode = 0;
    [[nodiscard]] friend bool operator==(const mode_information&, const mode_information&) noexcept = default;
};
void encode(byte_writer& writer, const mode_information& information) noexcept;
[[nodiscard]] decoded<mode_information> decode_mode_information(bytes_view bytes) noexcept;

/// FileAlignmentInformation, [MS-FSCC] 2.4: the required alignment of unbuffered I/O, minus one.
struct alignment_information {
    std::uint32_t requirement = 0;
    [[nodiscard]] friend bool operator==(const alignment_information&,
                                         const alignment_information&) noexcept = default;
};
void encode(byte_writer& writer, const alignment_information& information) noexcept;
[[nodiscard]] decoded<alignment_information> decode_alignment_information(bytes_view bytes) noexcept;

/// FileAllocationInformation, [MS-FSCC] 2.4. `bad_value` above 2^63 - 1.
struct allocation_information {
    std::uint64_t allocation_bytes = 0;
    [[nodiscard]] friend bool operator==(const allocation_information&,
                                         const allocation_information&) noexcept = default;
};
void encode(byte_writer& writer, const allocation_information& information) noexcept;
[[nodiscard]] decoded<allocation_information> decode_allocation_information(bytes_view bytes) noexcept;

/// FileEndOfFileInformation, [MS-FSCC] 2.4. `bad_value` above 2^63 - 1.
struct end_of_file_information {
    std::uint64_t end_of_file = 0;
    [[nodiscard]] friend bool operator==(const end_of_file_information&,
                                         const end_of_file_information&) noexcept = default;
};
void encode(byte_writer& writer, const end_of_file_information& information) noexcept;
[[nodiscard]] decoded<end_of_file_information> decode_end_of_file_information(bytes_view bytes) noexcept;

/// FileValidDataLengthInformation, [MS-FSCC] 2.4. `bad_value` above 2^63 - 1.
struct valid_data_length_information {
    std::uint64_t valid_bytes = 0;
    [[nodiscard]] friend bool operator==(const valid_data_length_information&,
                                         const valid_data_length_information&) noexcept = default;
};
void encode(byte_writer& writer, const valid_data_length_information& information) noexcept;
[[nodiscard]] decoded<valid_data_length_information> decode_valid_data_length_information(
    bytes_view bytes) noexcept;

/// FileDispositionInformation, [MS-FSCC] 2.4.
struct disposition_information {
    bool delete_on_close = false;
    [[nodiscard]] friend bool operator==(const disposition_information&,
                                         const disposition_information&) noexcept = default;
};
void encode(byte_writer& writer, const disposition_information& information) noexcept;
[[nodiscard]] decoded<disposition_information> decode_disposition_information(bytes_view bytes) noexcept;

/// FILE_DISPOSITION_*, [MS-FSCC] 2.4.
enum class disposition_flags : std::uint32_t {
    none = 0,
    delete_file = 0x01,
    posix_semantics = 0x02,
    force_image_section_check = 0x04,
    on_close = 0x08,
    ignore_read_only = 0x10,
};
template <>
inline constexpr bool is_bit_flags<disposition_flags> = true;

/// FileDispositionInformationEx, [MS-FSCC] 2.4.
struct disposition_information_ex {
    disposition_flags flags = disposition_flags::none;
    [[nodiscard]] friend bool operator==(const disposition_information_ex&,
                                         const disposition_information_ex&) noexcept = default;
};
void encode(byte_writer& writer, const disposition_information_ex& information) noexcept;
[[nodiscard]] decoded<disposition_information_ex> decode_disposition_information_ex(
    bytes_view bytes) noexcept;

/// A 128-bit file number, for volumes whose numbers exceed 64 bits.
using file_number_128 = std::array<std::byte, 16>;

/// FileIdInformation, [MS-FSCC] 2.4.
struct id_information {
    std::uint64_t volume_serial = 0;
    file_number_128 file_number{};
    [[nodiscard]] friend bool operator==(const id_information&, const id_information&) noexcept = default;
};
void encode(byte_writer& writer, const id_information& information) noexcept;
[[nodiscard]] decoded<id_information> decode_id_information(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire

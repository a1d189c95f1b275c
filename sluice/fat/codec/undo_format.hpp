#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "sluice/base/endian.hpp"
#include "sluice/fat/device.hpp"

// The undo file of a repair. docs/formats/fat_undo.md describes it completely.

namespace sluice::fat {

/// The first sector of the file. Offsets are from its start.
struct undo_header {
    std::array<char, 8> magic;     //  0  "SLUICUND"
    le32 version;                  //  8
    le32 state;                    // 12  undo_state
    le64 image_bytes;              // 16
    le64 volume_offset;            // 24  in the image
    le64 volume_bytes;             // 32
    std::array<std::byte, 16> id;  // 40  random
    le64 fingerprint_bytes;        // 56  bytes at the start of the volume that
                                   //     fingerprints cover completely
    le32 before;                   // 64  fingerprint before the repair
    le32 after;                    // 68  fingerprint after it; 0 while recording
    le32 changed;                  // 72  CRC-32 of the recorded ranges after the repair, in
                                   //     the order of records
    le32 unused;                   // 76  0
    le64 log_bytes;                // 80  end of the records; 0 while recording
    le64 image_modified;           // 88  after the repair, nanoseconds since 1970; 0: unknown
    le32 checksum;                 // 96  CRC-32 of bytes 0 to 95
};
static_assert(sizeof(undo_header) == 100 and offsetof(undo_header, fingerprint_bytes) == 56);
static_assert(offsetof(undo_header, log_bytes) == 80 and offsetof(undo_header, checksum) == 96);

/// Precedes the original bytes of a range.
struct undo_record {
    le64 offset;    //  0  in the volume
    le32 length;    //  8
    le32 checksum;  // 12  CRC-32 of the id, the record's place in the file (8 bytes), offset,
                    //     length, and the bytes
};
static_assert(sizeof(undo_record) == 16);

enum class undo_state : std::uint32_t {
    recording = 1,  ///< the repair is in progress, or was interrupted
    complete = 2,   ///< the repair has ended
    undoing = 3,    ///< the original bytes are being written back
    undone = 4,     ///< the original bytes are in place
};

inline constexpr std::uint64_t undo_records_offset = 512;
inline constexpr std::uint64_t undo_block_bytes = 4096;
inline constexpr std::uint64_t undo_record_bytes_max = 1 << 20;

/// The contents of the header, decoded.
struct undo_binding {
    undo_state state = undo_state::recording;
    std::uint64_t image_bytes = 0;
    byte_extent volume;  // in the image
    std::array<std::byte, 16> id{};
    std::uint64_t fingerprint_bytes = 0;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    std::uint32_t changed = 0;
    std::uint64_t log_bytes = 0;
    std::int64_t image_modified = 0;
};

[[nodiscard]] undo_header encode(const undo_binding& binding) noexcept;
/// Errors: a sentence: not an undo file, a newer version, damaged.
[[nodiscard]] std::expected<undo_binding, std::string> decode(const undo_header& raw);

/// Returns the checksum of a record at `place` of the file.
[[nodiscard]] std::uint32_t checksum_of(const undo_binding& of, std::uint64_t place,
                                        const undo_record& record, bytes_view bytes) noexcept;

/// Returns a CRC-32 of the first `whole_bytes` of a volume and of 64 pieces of 4 KiB spread over
/// it. Errors: those of the device. Allocates: 1 MiB. Complexity: linear in `whole_bytes`.
[[nodiscard]] result<std::uint32_t> volume_fingerprint(device& volume, std::uint64_t whole_bytes);

}  // namespace sluice::fat

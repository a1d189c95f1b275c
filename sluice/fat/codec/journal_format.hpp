#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "sluice/base/endian.hpp"
#include "sluice/fat/device.hpp"

// The format of a side journal: docs/formats/fat_journal.md.

namespace sluice::fat {

/// The first sector of a journal. It is a single sector so that a disk writes it atomically.
struct journal_header {
    std::array<char, 8> magic;          //  0  "SLUICJNL"
    le32 version;                       //  8
    le32 was_clean;                     // 12  1: the volume was marked clean before it was
                                        //     used with this journal
    le64 volume_offset;                 // 16  in the image
    le64 volume_bytes;                  // 24
    le64 generation;                    // 32  of the valid records
    std::array<std::byte, 16> id;       // 40  random; identifies the records
    le32 fingerprint;                   // 56  CRC-32 of the volume's first 512 bytes,
                                        //     without the dirty mark
    le32 checksum;                      // 60  CRC-32 of bytes 0 to 59
    std::array<std::byte, 448> unused;  // 64
};
static_assert(sizeof(journal_header) == 512 and alignof(journal_header) == 1);
static_assert(offsetof(journal_header, id) == 40 and offsetof(journal_header, checksum) == 60);

enum class journal_kind : std::uint32_t {
    write = 1,  // the bytes follow
    hole = 2,   // zeros
    end = 3,    // the end of a batch
};

/// Precedes each change and ends each batch.
struct journal_record {
    le32 kind;              //  0  a journal_kind
    le32 payload_checksum;  //  4  CRC-32 of the bytes that follow
    le64 offset;            //  8  in the volume; 0 in an end record
    le64 length;            // 16  bytes changed; in an end record, the number of
                            //     records in the batch
    le64 generation;        // 24
    le32 checksum;          // 32  CRC-32 of the journal's id, the record's own place (8
                            //     bytes), and all above
    le32 zero;              // 36
};
static_assert(sizeof(journal_record) == 40 and alignof(journal_record) == 1);

inline constexpr std::uint64_t journal_records_offset = 4096;
inline constexpr std::uint64_t journal_bytes_min = 64U << 10;
/// Upper bounds of a journal.
inline constexpr std::uint64_t journal_bytes_max = 128U << 20;
inline constexpr std::uint32_t journal_records_max = 1U << 18;

/// The volume that a journal belongs to.
struct journal_binding {
    byte_extent volume;  // in the image
    bool was_clean = false;
    std::uint64_t generation = 0;
    std::array<std::byte, 16> id{};
    std::uint32_t fingerprint = 0;
};

/// Returns whether the magic is that of a journal, damaged or not.
[[nodiscard]] bool has_magic(const journal_header& raw) noexcept;
[[nodiscard]] journal_header encode(const journal_binding& binding) noexcept;
/// Errors: a sentence: not a journal, a newer version, damaged.
[[nodiscard]] std::expected<journal_binding, std::string> decode(const journal_header& raw);

/// Returns the expected value of record.checksum. `place` is the position of the record in the
/// journal.
[[nodiscard]] std::uint32_t checksum_of(const journal_binding& of, const journal_record& record,
                                        std::uint64_t place) noexcept;

}  // namespace sluice::fat

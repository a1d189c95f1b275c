#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

// The layout of a handle journal, docs/formats/handle_journal.md.
namespace sluice::smb::server::journal_format {

/// The header is alone in the first page.
inline constexpr std::size_t header_bytes = 4096;
/// Two copies of a record, of which one is current, are a slot.
inline constexpr std::size_t copy_bytes = 6144;
inline constexpr std::size_t slot_bytes = 2 * copy_bytes;
/// The number of slots by which the file grows.
inline constexpr std::uint32_t slots_per_step = 64;
inline constexpr std::uint32_t version = 2;
inline constexpr std::array<char, 8> magic{'S', 'L', 'U', 'I', 'C', 'E', 'H', 'J'};

/// The start of the file.
struct header {
    std::array<char, 8> magic;       //  0
    le32 version;                    //  8
    le32 slot_bytes;                 // 12
    std::array<std::byte, 16> boot;  // 16  the kernel's ID of the boot
    le64 device;                     // 32  identity of the share's root
    le64 inode;                      // 40
    le64 born;                       // 48
    le32 zero;                       // 56
    le32 checksum;                   // 60  CRC-32C of bytes 0 to 59
    le32 attempts;                   // 64  restorations that have begun
    le32 process_id;                 // 68  the process that has the file
};
static_assert(sizeof(header) == 72 and wire_type<header>);
static_assert(offsetof(header, checksum) == 60 and offsetof(header, attempts) == 64);
static_assert(offsetof(header, process_id) == 68);

/// The start of a copy; the content follows.
struct copy_header {
    le64 generation;  //  0  0: never written. Even in the first copy of a slot, odd in the second
    le32 length;      //  8  of the content; 0: the slot is empty
    le32 checksum;    // 12  CRC-32C of bytes 0 to 11 and of the content
};
static_assert(sizeof(copy_header) == 16 and wire_type<copy_header>);

inline constexpr std::size_t content_bytes_max = copy_bytes - sizeof(copy_header);
/// A copy with a greater generation is damaged. A slot that is written each microsecond reaches it
/// in 140,000 years, and then has as many left.
inline constexpr std::uint64_t found_generation_max = std::uint64_t{1} << 62;
inline constexpr std::uint64_t generation_max = std::uint64_t{1} << 63;

static_assert(header_bytes % alignof(std::uint64_t) == 0 and copy_bytes % alignof(std::uint64_t) == 0);

}  // namespace sluice::smb::server::journal_format

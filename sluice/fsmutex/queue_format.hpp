#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/fsmutex/entity.hpp"

// The file of atomic_append, docs/formats/fs_mutex_file.md: a header, and behind its page slots of 128 bytes.
// Bytes in, values out, and back; no i/o.

namespace sluice::fsmutex::queue_format {

inline constexpr std::size_t slot_bytes = 128;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t slots_per_page = page_bytes / slot_bytes;
inline constexpr std::size_t header_bytes = 128;
inline constexpr std::size_t elders_max = (page_bytes - header_bytes) / 8 - 1;
inline constexpr std::size_t head_entities_max = 9;
inline constexpr std::size_t continuation_entities_max = 12;
inline constexpr std::size_t host_bytes = 20;

/// The header on disk.
struct header_record {
    le64 hash[2];                 //   0  SipHash-2-4-128, key zero, of what follows, elders included
    le64 generation;              //  16  one more with every change
    le64 created_s;               //  24  seconds since 1970
    le64 first_known_good;        //  32  no live slot stands before this, but on the elders' pages
    le64 first_after_hole_punch;  //  40  before this the file is a hole, but for the elders' pages
    le64 version;                 //  48
    le32 elder_count;             //  56
    le32 ring_pages;              //  60  0: every slot has bytes of its own
    le64 reserved[8];             //  64
};
static_assert(sizeof(header_record) == header_bytes and offsetof(header_record, version) == 48);

/// A slot on disk.
struct slot_record {
    le64 hash;                //   0  the first half of SipHash-2-4-128, key zero, of what follows
    le64 place;               //   8  in a ring: where it stands, as if the file had no end; else 0
    le64 id;                  //  16  drawn for each request; its slots share it
    le64 when_and_count;      //  24  lower 56 bits: microseconds since creation; upper 8: count and flags
    le64 entities[9];         //  32
    le64 owner_or_entity[3];  // 104  of a head: process id (4 bytes), host (20); of a continuation: entities
};
static_assert(sizeof(slot_record) == slot_bytes and offsetof(slot_record, owner_or_entity) == 104);

inline constexpr std::uint64_t version_3 = 0x3351'6563'6975'6c73;  // "sluiceQ3"
/// Of a ring: the place behind the last slot, eight bytes that no hash covers.
inline constexpr std::uint64_t ring_end_offset = page_bytes - 8;
/// Enough for as many pages with a lock held for long as there can be elders, and small.
inline constexpr std::uint32_t ring_pages_usual = 512;
inline constexpr std::uint32_t ring_pages_max = 1U << 20;

struct header {
    std::uint64_t generation = 0;
    std::uint64_t created_s = 0;
    std::uint64_t first_known_good = page_bytes;
    std::uint64_t first_after_hole_punch = page_bytes;
    std::uint32_t ring_pages = 0;
    std::vector<std::uint64_t> elders{};  // offsets of pages, ascending, at most elders_max

    [[nodiscard]] friend bool operator==(const header&, const header&) = default;
};

/// The header in the first page of a file; nothing if it is torn, another version's, or no header.
/// Allocates: the elders.
[[nodiscard]] std::optional<header> decode_header(bytes_view page);
/// Into a page; how many bytes of it matter. `elders` are at most elders_max.
std::size_t encode(const header& from, std::array<std::byte, page_bytes>& page) noexcept;

/// Whether at most a page of bytes holds nothing.
[[nodiscard]] bool is_zero(bytes_view bytes) noexcept;

enum class slot_kind : std::uint8_t {
    free,          // nobody's, or given back
    torn,          // being written, or never a slot
    head,          // the first of a request
    continuation,  // more entities of the request before it
};

struct slot {
    slot_kind kind = slot_kind::free;
    bool is_continued = false;
    std::uint8_t count = 0;
    std::uint64_t place = 0;
    std::uint64_t id = 0;
    std::uint64_t when_us = 0;
    std::array<entity, continuation_entities_max> all{};
    std::uint32_t process_id = 0;         // of a head
    std::array<char, host_bytes> host{};  // of a head; cut, and ended by zero only if shorter

    [[nodiscard]] bool is_live() const noexcept {
        return kind == slot_kind::head or kind == slot_kind::continuation;
    }
    [[nodiscard]] std::span<const entity> entities() const noexcept { return {all.data(), count}; }
    [[nodiscard]] std::string_view host_name() const noexcept;
};

/// One slot; of fewer bytes than slot_bytes: torn. Entities are in ascending order, each once.
[[nodiscard]] slot decode_slot(bytes_view bytes) noexcept;
/// Of a free slot zeros. `from` is not torn.
void encode(const slot& from, std::span<std::byte, slot_bytes> bytes) noexcept;

/// Says in an encoded slot where it stands.
void set_place(std::span<std::byte, slot_bytes> bytes, std::uint64_t place) noexcept;

/// What is left of `from` of those entities that `keep` says true of; free if of none.
template <class Keep>
[[nodiscard]] slot with_only(const slot& from, Keep&& keep) noexcept {
    slot made = from;
    made.count = 0;
    for (const entity each : from.entities())
        if (keep(each)) made.all[made.count++] = each;
    return made.count == 0 ? slot{} : made;
}

/// How many slots a request for so many entities takes.
[[nodiscard]] constexpr std::size_t slots_for(std::size_t entities) noexcept {
    if (entities <= head_entities_max) return 1;
    return 1 + (entities - head_entities_max + continuation_entities_max - 1) / continuation_entities_max;
}
/// The slot `index` of such a request; `head` has its id, time and owner.
[[nodiscard]] slot slot_of(const slot& head, std::span<const entity> wanted, std::size_t index) noexcept;

}  // namespace sluice::fsmutex::queue_format

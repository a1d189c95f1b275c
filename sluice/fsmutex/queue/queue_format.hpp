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

// The file of atomic_append, docs/formats/fs_mutex_file.md: a header page, followed by slots of 128
// bytes. Encodes and decodes; no I/O.

namespace sluice::fsmutex::queue_format {

inline constexpr std::size_t slot_bytes = 128;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t slots_per_page = page_bytes / slot_bytes;
inline constexpr std::size_t header_bytes = 128;
inline constexpr std::size_t live_pages_max = (page_bytes - header_bytes) / 8 - 1;
inline constexpr std::size_t head_entities_max = 9;
inline constexpr std::size_t continuation_entities_max = 12;
inline constexpr std::size_t host_bytes = 20;

/// The header on disk.
struct header_record {
    le64 hash[2];                 // SipHash-2-4-128, key zero, of the bytes
                                  // below and the live pages
    le64 generation;              //  16  one more with every change
    le64 created_s;               //  24  seconds since 1970
    le64 first_known_good;        // no live slot is before this, except on the live pages
    le64 first_after_hole_punch;  // before this the file is a hole, except for the live pages
    le64 version;                 //  48
    le32 live_page_count;         //  56
    le32 ring_pages;              //  60  0: every slot has bytes of its own
    le64 reserved[8];             //  64
};
static_assert(sizeof(header_record) == header_bytes and offsetof(header_record, version) == 48);

/// A slot on disk.
struct slot_record {
    le64 hash;                // the first half of SipHash-2-4-128, key zero, of the bytes below
    le64 place;               // in a ring: its position, as if the file had no end; else 0
    le64 id;                  // random for each request; its slots share it
    le64 when_and_count;      //  24  lower 56 bits: microseconds since creation;
                              //      upper 8: count and flags
    le64 entities[9];         //  32
    le64 owner_or_entity[3];  // head: process id (4 bytes), host (20); continuation: entities
};
static_assert(sizeof(slot_record) == slot_bytes and offsetof(slot_record, owner_or_entity) == 104);

inline constexpr std::uint64_t version_3 = 0x3351'6563'6975'6c73;  // "sluiceQ3"
/// In a ring: the position after the last slot, eight bytes that no hash covers.
inline constexpr std::uint64_t ring_end_offset = page_bytes - 8;
/// Enough for the largest number of live pages with a lock held for long, and small.
inline constexpr std::uint32_t ring_pages_usual = 512;
inline constexpr std::uint32_t ring_pages_max = 1U << 20;

struct header {
    std::uint64_t generation = 0;
    std::uint64_t created_s = 0;
    std::uint64_t first_known_good = page_bytes;
    std::uint64_t first_after_hole_punch = page_bytes;
    std::uint32_t ring_pages = 0;
    std::vector<std::uint64_t> live_pages{};  // offsets of pages, ascending, at most live_pages_max

    [[nodiscard]] friend bool operator==(const header&, const header&) = default;
};

/// Returns the header in the first page of a file, or std::nullopt if it is torn, has another
/// version, or is not a header. Allocates: the offsets of live pages.
[[nodiscard]] std::optional<header> decode_header(bytes_view page);
/// Encodes a header into a page. Returns the number of bytes used. `live_pages`
/// are at most live_pages_max.
std::size_t encode(const header& from, std::array<std::byte, page_bytes>& page) noexcept;

/// Returns whether all bytes are zero; at most a page.
[[nodiscard]] bool is_zero(bytes_view bytes) noexcept;

enum class slot_kind : std::uint8_t {
    free,          // never used, or released
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
    std::uint32_t process_id = 0;         // head only
    std::array<char, host_bytes> host{};  // head only; truncated, and ended by zero only if shorter

    [[nodiscard]] bool is_live() const noexcept {
        return kind == slot_kind::head or kind == slot_kind::continuation;
    }
    [[nodiscard]] std::span<const entity> entities() const noexcept { return {all.data(), count}; }
    [[nodiscard]] std::string_view host_name() const noexcept;
};

/// Decodes one slot. Returns a torn one for fewer bytes than slot_bytes. Entities are in ascending
/// order, each once.
[[nodiscard]] slot decode_slot(bytes_view bytes) noexcept;
/// Encodes a slot; a free one becomes zeros. `from` is not torn.
void encode(const slot& from, std::span<std::byte, slot_bytes> bytes) noexcept;

/// Writes its position into an encoded slot.
void set_place(std::span<std::byte, slot_bytes> bytes, std::uint64_t place) noexcept;

/// Returns `from` with only the entities for which `keep` returns true; a free slot if there are
/// none.
template <class Keep>
[[nodiscard]] slot with_only(const slot& from, Keep&& keep) noexcept {
    slot made = from;
    made.count = 0;
    for (const entity each : from.entities())
        if (keep(each)) made.all[made.count++] = each;
    return made.count == 0 ? slot{} : made;
}

/// Returns the number of slots of a request for `entities` entities.
[[nodiscard]] constexpr std::size_t slots_for(std::size_t entities) noexcept {
    if (entities <= head_entities_max) return 1;
    return 1 + (entities - head_entities_max + continuation_entities_max - 1) / continuation_entities_max;
}
/// Returns the slot `index` of such a request; `head` has its id, time and owner.
[[nodiscard]] slot slot_of(const slot& head, std::span<const entity> wanted, std::size_t index) noexcept;

}  // namespace sluice::fsmutex::queue_format

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "sluice/base/endian.hpp"
#include "sluice/fat/device.hpp"

// The format of an overlay: docs/formats/fat_overlay.md.

namespace sluice::fat {

/// The first sector of an overlay. It is a single sector so that a disk writes it atomically.
struct overlay_header {
    std::array<char, 8> magic;          //  0  "SLUICOVL"
    le32 version;                       //  8
    le32 state;                         // 12  an overlay_state
    le32 block_bytes;                   // 16
    le32 fingerprint;                   // 20  of the image; once committing, of the
                                        //     image under its overlay
    le64 image_bytes;                   // 24
    le64 image_modified;                // 32  nanoseconds since 1970; 0: not checked
    std::array<std::byte, 16> id;       // 40  random; identifies the entries
    le32 checksum;                      // 56  CRC-32 of bytes 0 to 55
    std::array<std::byte, 452> unused;  // 60
};
static_assert(sizeof(overlay_header) == 512 and alignof(overlay_header) == 1);
static_assert(offsetof(overlay_header, id) == 40 and offsetof(overlay_header, checksum) == 56);

/// The entry of a slot that holds a block; all zeros for an empty slot. Written once and never
/// changed.
struct overlay_entry {
    le32 block_plus_one;  // 0
    le32 checksum;        // 4  CRC-32 of the overlay's id, the slot's number (8
                          //    bytes) and the field above
};
static_assert(sizeof(overlay_entry) == 8 and alignof(overlay_entry) == 1);

enum class overlay_state : std::uint32_t {
    collecting = 1,
    committing = 2,  // a part may already be in the image
};

/// The division of an image into blocks, and the layout of its overlay.
///
/// Invariants: block_bytes is a power of two; there are as many slots as blocks, at most
/// blocks_max, in groups of slots_per_group, each after a page with their entries.
struct overlay_layout {
    static constexpr std::uint64_t page_bytes = 4096;
    static constexpr std::uint32_t slots_per_group = page_bytes / sizeof(overlay_entry);
    static constexpr std::uint32_t block_bytes_min = 4096;
    static constexpr std::uint32_t block_bytes_max = 1U << 24;
    static constexpr std::uint64_t blocks_max = 1U << 24;  // per image; 4 bytes of memory each

    std::uint64_t image_bytes = 0;
    std::uint32_t block_bytes = block_bytes_min;

    /// Returns the layout with the smallest blocks for which the image has at most blocks_max
    /// blocks.
    [[nodiscard]] static overlay_layout for_image(std::uint64_t image_bytes) noexcept;

    [[nodiscard]] std::uint32_t block_count() const noexcept {
        return static_cast<std::uint32_t>(image_bytes / block_bytes + (image_bytes % block_bytes != 0));
    }
    [[nodiscard]] std::uint32_t group_count() const noexcept {
        return (block_count() + slots_per_group - 1) / slots_per_group;
    }
    [[nodiscard]] std::uint64_t group_offset(std::uint32_t group) const noexcept {
        return page_bytes + group * (page_bytes + std::uint64_t{slots_per_group} * block_bytes);
    }
    [[nodiscard]] std::uint64_t entry_offset(std::uint32_t slot) const noexcept {
        return group_offset(slot / slots_per_group) + slot % slots_per_group * sizeof(overlay_entry);
    }
    [[nodiscard]] std::uint64_t slot_offset(std::uint32_t slot) const noexcept {
        return group_offset(slot / slots_per_group) + page_bytes +
               std::uint64_t{slot % slots_per_group} * block_bytes;
    }
    /// Returns the size of an overlay in which every block is stored.
    [[nodiscard]] std::uint64_t store_bytes() const noexcept { return group_offset(group_count()); }
};

/// The image that an overlay belongs to.
struct overlay_binding {
    overlay_layout layout;
    overlay_state state = overlay_state::collecting;
    std::uint32_t fingerprint = 0;
    std::int64_t image_modified = 0;  // nanoseconds since 1970; 0: not checked
    std::array<std::byte, 16> id{};
};

/// Returns whether the magic is that of an overlay, damaged or not.
[[nodiscard]] bool has_magic(const overlay_header& raw) noexcept;
[[nodiscard]] overlay_header encode(const overlay_binding& binding) noexcept;
/// Errors: a sentence: not an overlay, a newer version, damaged.
[[nodiscard]] std::expected<overlay_binding, std::string> decode(const overlay_header& raw);

[[nodiscard]] overlay_entry encode_entry(const overlay_binding& of, std::uint32_t slot,
                                         std::uint32_t block) noexcept;

/// Returns a number that identifies the content of an image: a CRC-32 of its first 64 KiB and of 64
/// pieces of 4 KiB spread over it. Errors: those of the device. Complexity: O(1). Allocates: 64
/// KiB.
[[nodiscard]] result<std::uint32_t> fingerprint_of(device& image);

}  // namespace sluice::fat

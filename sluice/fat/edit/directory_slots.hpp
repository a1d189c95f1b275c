#pragma once

#include <vector>

#include "sluice/fat/codec/directory_entry.hpp"
#include "sluice/fat/edit/table_editor.hpp"
#include "sluice/fat/limits.hpp"

namespace sluice::fat {

[[nodiscard]] result<directory_entry> read_slot(device& image, std::uint64_t offset);
[[nodiscard]] result<void> write_slot(device& image, std::uint64_t offset, const directory_entry& entry);

/// The slots of a directory, by their offsets, for changes to a volume that is not mounted.
///
/// Invariants:
///   1. The directory's chain is consistent, or at least every cluster up to its end is on the
///      volume.
///   2. No slot before `next_` of extent `extent_` is allocated again. Once `is_after_end_`, no
///      slot after the position is in use.
/// Thread safety: none of its own. The constructor's arguments outlive the object.
class directory_slots {
public:
    /// The slots of the root.
    directory_slots(device& image, const geometry& shape, table_editor& table)
        : directory_slots(image, shape, table, shape.type == fat_type::fat32 ? shape.root_cluster : 0) {}
    /// The slots of the directory that begins at cluster `first`; if it is 0,
    /// those of the fixed root.
    directory_slots(device& image, const geometry& shape, table_editor& table, std::uint32_t first)
        : image_(image), shape_(shape), table_(table), extents_(extents_from(first)) {}

    enum class where : bool { anywhere, after_end };

    /// Allocates an unused slot and returns its offset; the slot after the old end becomes the new
    /// end. Slots allocated with `after_end` are consecutive. A full directory grows by a cluster,
    /// through the table, unless it is the fixed root or its chain lacks an end mark. Returns
    /// std::nullopt if there is no room. The caller writes to each slot before it allocates the
    /// next. Errors: those of the device. Complexity: linear in the directory for all calls
    /// together.
    [[nodiscard]] result<std::optional<std::uint64_t>> take(where place = where::anywhere);

    /// Returns the offset of slot `number` of the directory, or std::nullopt if it has fewer slots.
    [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t number) const noexcept;

    /// Calls `visit(offset, entry)` for the slots before the end until it returns true. Returns
    /// whether it did.
    template <class Visit>
    [[nodiscard]] result<bool> find(Visit visit) {
        std::vector<std::byte> room;
        for (const byte_extent& extent : extents_) {
            room.resize(extent.length);
            if (const auto done = image_.read_at(extent.offset, std::span(room)); not done)
                return failure(done.error());
            for (std::size_t at = 0; at != room.size(); at += slot_bytes) {
                const auto entry = *bytes_view(room).take_at<directory_entry>(at);
                if (kind_of(entry) == slot_kind::end) return false;
                if (visit(extent.offset + at, entry)) return true;
            }
        }
        return false;
    }

private:
    [[nodiscard]] std::vector<byte_extent> extents_from(std::uint32_t first) const;
    [[nodiscard]] std::optional<std::uint32_t> growing_end() const noexcept;
    [[nodiscard]] result<bool> extend();

    device& image_;
    const geometry& shape_;
    table_editor& table_;
    std::vector<byte_extent> extents_;
    std::size_t extent_ = 0;
    std::uint64_t next_ = 0;  // bytes from the start of the extent
    bool is_after_end_ = false;
};

}  // namespace sluice::fat

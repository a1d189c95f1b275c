#pragma once

#include "sluice/fat/directory_entry.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/table_editor.hpp"

namespace sluice::fat {

[[nodiscard]] result<directory_entry> read_slot(device& image, std::uint64_t offset);
[[nodiscard]] result<void> write_slot(device& image, std::uint64_t offset, const directory_entry& entry);

/// The slots of a root directory, by their offsets, for who changes a volume that is not mounted.
///
/// Invariant: the root's chain is sound, or at least every cluster up to its end is one of the volume.
/// Thread safety: none of its own. All outlive it.
class root_slots {
public:
    root_slots(device& image, const geometry& shape, table_editor& table) noexcept
        : image_(image), shape_(shape), table_(table) {}

    /// Where the directory lies. Allocates: the list, of at most 2 MiB of directory.
    [[nodiscard]] std::vector<byte_extent> extents() const;

    /// The offset of a slot nobody uses; the slot behind the old end is made the new one. Extends the root
    /// of FAT32 by a cluster, through the table, if it is full. Nothing if there is no room.
    [[nodiscard]] result<std::optional<std::uint64_t>> take();

    /// Calls `visit(offset, entry)` for all slots before the end until it returns true; whether it did.
    template <class Visit>
    [[nodiscard]] result<bool> find(Visit visit) {
        for (const byte_extent& extent : extents())
            for (std::uint64_t at = extent.offset; at != extent.offset + extent.length; at += slot_bytes) {
                const auto entry = read_slot(image_, at);
                if (not entry) return failure(entry.error());
                if (kind_of(*entry) == slot_kind::end) return false;
                if (visit(at, *entry)) return true;
            }
        return false;
    }

private:
    [[nodiscard]] result<std::optional<std::uint64_t>> extend(std::uint64_t last_offset);

    device& image_;
    const geometry& shape_;
    table_editor& table_;
};

}  // namespace sluice::fat

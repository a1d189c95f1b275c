#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/fat/codec/long_name.hpp"
#include "sluice/fat/codec/short_name.hpp"
#include "sluice/fat/engine/cluster_chain.hpp"
#include "sluice/fat/engine/name_index.hpp"

namespace sluice::fat {

/// One directory in memory: its bytes, and an index of its names that ignores case. It is read
/// once, and updated when names are added and removed.
///
/// Changes reach the disk in two calls of write(): first additions and updates; then, after
/// apply_removals(), removals, so that a name that moves from one place to another always exists in
/// at least one of them. A crash between the two calls leaves both. If two entries have names that
/// differ only in case, and the same file, load() keeps one and removes the other with the next
/// write.
///
/// Invariants:
///   1. image_ equals the content of the device, except for the sectors in dirty_ and the bytes
///      after a moved end. dirty_count_ is the number of dirty sectors.
///   2. A slot is used if it is part of an entry, of a removed entry that is still on the disk, or
///      of unknown content, which is never changed; used_, free_in_ (per sector) and room_from_
///      record this. No slot after end_ is used.
///   3. A set of slots that fits into a sector is in one sector. In a longer set, each sector is
///      written before the next: the entry proper is last.
///   4. names_ has every entry, removed ones as long as they are on the disk.
/// Complexity: find O(1); add O(1) amortised, except for the search for free slots, which visits
/// each sector once until a name is removed before it. Allocates: up to the limits of FAT, 2 MiB
/// and an index of 65,536 names.
/// Thread safety: none of its own.
class directory {
public:
    static constexpr std::size_t bytes_max = 2U << 20;

    struct source {
        device& on;
        const geometry& shape;
        code_page page = code_page::cp437;
    };
    /// Reads the directory whose clusters are those of `chain`; the fixed root if null. Reads as
    /// much of it as is intact: see is_damaged(). Errors: EIO for a directory without a first
    /// cluster; those of the device.
    [[nodiscard]] static result<std::unique_ptr<directory>> load(const source& from, cluster_chain* chain);

    /// Returns whether its chain is incomplete or cyclic. Then the names before the damage are
    /// valid, but none can be added.
    [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return image_.size(); }
    [[nodiscard]] std::size_t name_count() const noexcept { return names_.count(); }

    /// Returns the entry of a name, ignoring case; null if there is none.
    [[nodiscard]] const name_entry* find(std::string_view name) const { return names_.find(name); }
    [[nodiscard]] const name_entry* at(std::uint32_t slot) const noexcept { return names_.at(slot); }
    /// Returns the first entry at or after a slot; null at the end.
    [[nodiscard]] const name_entry* next(std::uint32_t from) const noexcept { return names_.next(from); }
    /// Returns whether a name that was removed or replaced is still on the disk.
    [[nodiscard]] bool is_leaving(std::string_view name) const { return names_.is_leaving(name); }

    [[nodiscard]] directory_entry read(std::uint32_t slot) const noexcept;
    /// Changes an entry in place. The bytes of its name stay.
    void update(std::uint32_t slot, const directory_entry& entry) noexcept;
    /// Returns the slot of the volume's label, in a root.
    [[nodiscard]] std::optional<std::uint32_t> label_slot() const noexcept { return label_slot_; }
    /// Sets the parent directory of `..`.
    void set_parent(std::uint32_t cluster, cluster_width width) noexcept;

    /// Adds a new name, with the fields of `entry` except its name. Errors: ENOSPC if the directory
    /// must grow or, if is_full(), cannot; EIO if it is damaged; those of the device.
    [[nodiscard]] result<const name_entry*> add(std::string_view name, const directory_entry& entry);
    [[nodiscard]] bool is_full() const noexcept;
    /// Adds a cluster that is all zeros.
    void grow(std::uint64_t offset);

    /// Returns whether add() has room for a name without growing.
    [[nodiscard]] bool has_room_for(std::string_view name) noexcept;

    /// Removes an entry: from the index at once, and from the bytes with the next apply_removals().
    void remove(std::uint32_t slot);
    /// `other` replaces the entry at `slot`, which was removed last. If both are in one sector,
    /// which is written atomically, the removal takes effect at once.
    void join(std::uint32_t slot, const name_entry& other) noexcept;
    /// Changes the case of a name, in place or elsewhere in its sector, which is written
    /// atomically. Returns the new slot, or std::nullopt if the sector has no room.
    [[nodiscard]] std::optional<std::uint32_t> change_case(std::uint32_t slot, std::string_view name);

    [[nodiscard]] bool is_dirty() const noexcept { return dirty_count_ != 0; }
    [[nodiscard]] bool has_removals() const noexcept {
        return not removals_.empty() or not leftovers_.empty();
    }
    void apply_removals() noexcept;
    /// Writes the dirty sectors. `order` separates earlier from later writes; in the meantime other
    /// threads may look up names but not change them. Errors: those of the device, and of `order`;
    /// then all sectors stay dirty.
    [[nodiscard]] result<void> write(const std::function<result<void>()>& order) noexcept;

private:
    struct slots {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    explicit directory(const source& from) : device_(from.on), shape_(from.shape), page_(from.page) {}

    result<void> read_clusters(cluster_chain& chain);
    void build_index();
    void index(slots which, const directory_entry& raw, const long_name_collector& pieces);
    [[nodiscard]] bool skip_leftover_entry(const name_entry& fresh);

    [[nodiscard]] std::uint32_t slot_count() const noexcept {
        return static_cast<std::uint32_t>(image_.size() / slot_bytes);
    }
    [[nodiscard]] std::uint32_t slots_per_sector() const noexcept {
        return static_cast<std::uint32_t>(shape_.sector_bytes / slot_bytes);
    }
    void put(std::uint32_t slot, const directory_entry& raw) noexcept;
    void mark_dirty(std::uint32_t sector) noexcept;
    void occupy(slots which) noexcept;
    void release_slots(slots which) noexcept;
    void mark_free(slots which) noexcept;
    [[nodiscard]] static slots set_of(const name_entry& of) noexcept {
        return {.first = of.first_slot, .count = of.slot - of.first_slot + 1};
    }
    void apply(slots gone) noexcept;
    void extend_to(slots which) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_instead_of(slots old, std::uint32_t count) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_for(std::uint32_t count) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_in(std::uint32_t from, slots where) const noexcept;
    [[nodiscard]] result<void> zero_after_end() noexcept;
    void write_set(slots where, std::u16string_view name, const directory_entry& raw) noexcept;
    struct own_short_name {
        short_name raw;
        std::string alias;  // as shown; empty if it equals the name
    };
    [[nodiscard]] own_short_name unused_short_name(std::string_view name);
    [[nodiscard]] std::uint64_t offset_of(std::uint32_t sector) const noexcept;

    device& device_;
    const geometry& shape_;
    code_page page_;
    std::vector<std::byte> image_;
    std::vector<std::uint64_t> offsets_;  // on the device, of each cluster; one for the fixed root
    bool is_fixed_ = false;
    bool is_damaged_ = false;
    bool is_wiped_ = false;  // after end_
    std::uint32_t end_ = 0;
    std::optional<std::uint32_t> label_slot_;

    name_index names_;
    // By basis; all lower numbers are used.
    std::unordered_map<std::string, std::uint32_t> next_number_;

    std::vector<bool> used_;
    std::vector<std::uint16_t> free_in_;  // per sector
    std::array<std::uint32_t, long_name_slots_max + 2>
        room_from_{};  // no earlier sector has that many in a row, unless released_from_ is less
    std::uint32_t released_from_ = UINT32_MAX;

    std::vector<bool> dirty_;          // sectors
    std::vector<bool> after_another_;  // subset: to write once the preceding sector is durable
    std::size_t dirty_count_ = 0;
    std::vector<slots> removals_;   // sets whose entry is being removed
    std::vector<slots> leftovers_;  // sets to remove that names_ does not have
};

}  // namespace sluice::fat

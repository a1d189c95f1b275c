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

/// One directory in memory: its bytes, and an index of its names that ignores case. Built once by reading it
/// through; kept while names come and go.
///
/// What is changed reaches the disk in two steps, write() each time: what was added or changed first; then,
/// after apply_removals(), what was removed, so that a name on its way from one place to another is at no
/// moment at neither. A crash between the two leaves both; of two that are one name but for case, and one
/// file, load() keeps one and has the other removed with the next write.
///
/// Invariants:
///   1. image_ is what is on the device, but for the sectors in dirty_ and what is beyond a move of the end.
///      dirty_count_ is how many they are.
///   2. A slot is used if it is part of an entry, of a removed one that is still on the disk, or not ours to
///      touch; used_, free_in_ (per sector) and room_from_ say so. No slot behind end_ is used.
///   3. A set of slots that fits into a sector lies in one. Of a longer one, each sector is written before
///   the
///      next: the entry proper comes last.
///   4. names_ has every entry, removed ones as long as they are on the disk.
/// Complexity: find O(1); add O(1) amortised but for the search of room, which looks at each sector once
/// until something is removed before it. Allocates: up to limits of FAT, 2 MiB and an index of 65,536 names.
/// Thread safety: none of its own.
class directory {
public:
    static constexpr std::size_t bytes_max = 2U << 20;

    struct source {
        device& on;
        const geometry& shape;
        code_page page = code_page::cp437;
    };
    /// Reads the directory whose clusters are those of `chain`; the fixed root if null. As much of it as is
    /// intact: see is_damaged(). Errors: EIO for one without a first cluster; those of the device.
    [[nodiscard]] static result<std::unique_ptr<directory>> load(const source& from, cluster_chain* chain);

    /// Whether its chain breaks off or comes back to itself: what was read stands, nothing may be added.
    [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return image_.size(); }
    [[nodiscard]] std::size_t name_count() const noexcept { return names_.count(); }

    /// The entry of a name, in whatever case; null if there is none.
    [[nodiscard]] const name_entry* find(std::string_view name) const { return names_.find(name); }
    [[nodiscard]] const name_entry* at(std::uint32_t slot) const noexcept { return names_.at(slot); }
    /// The first entry at a slot or behind; null at the end.
    [[nodiscard]] const name_entry* next(std::uint32_t from) const noexcept { return names_.next(from); }
    /// Whether a name that was removed, or given up for another, is still on the disk.
    [[nodiscard]] bool is_leaving(std::string_view name) const { return names_.is_leaving(name); }

    [[nodiscard]] directory_entry read(std::uint32_t slot) const noexcept;
    /// Changes an entry in its place. Its name bytes stay.
    void update(std::uint32_t slot, const directory_entry& entry) noexcept;
    /// The entry of the volume's label, in a root.
    [[nodiscard]] std::optional<std::uint32_t> label_slot() const noexcept { return label_slot_; }
    /// Lets `..` lead elsewhere.
    void set_parent(std::uint32_t cluster, cluster_width width) noexcept;

    /// Adds a name that is not there, with what `entry` says but its name. Errors: ENOSPC: it needs to grow,
    /// or, is_full(), cannot; EIO if it is damaged. Those of the device.
    [[nodiscard]] result<const name_entry*> add(std::string_view name, const directory_entry& entry);
    [[nodiscard]] bool is_full() const noexcept;
    /// It has got another cluster, which is all zeros.
    void grow(std::uint64_t offset);

    /// Whether add() finds room for a name without growing.
    [[nodiscard]] bool has_room_for(std::string_view name) noexcept;

    /// Takes an entry out, of the index at once and of the bytes with the next apply_removals().
    void remove(std::uint32_t slot);
    /// `other` has come in the place of what was removed last, at `slot`: if one sector has both, which is
    /// written whole or not at all, the removal takes effect at once.
    void join(std::uint32_t slot, const name_entry& other) noexcept;
    /// Spells a name in another case, in its place or elsewhere in its sector, which is written whole or not
    /// at all. Where it is now; nothing if there is no room for that.
    [[nodiscard]] std::optional<std::uint32_t> respell(std::uint32_t slot, std::string_view name);

    [[nodiscard]] bool is_dirty() const noexcept { return dirty_count_ != 0; }
    [[nodiscard]] bool has_removals() const noexcept {
        return not removals_.empty() or not leftovers_.empty();
    }
    void apply_removals() noexcept;
    /// Writes the sectors that have changed. `order` keeps what was written before from coming after what is
    /// written next; meanwhile others may look names up, nobody may change any. Errors: of the device, and
    /// of `order`, and then all stay to be written.
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
    [[nodiscard]] bool put_leftover_aside(const name_entry& fresh);

    [[nodiscard]] std::uint32_t slot_count() const noexcept {
        return static_cast<std::uint32_t>(image_.size() / slot_bytes);
    }
    [[nodiscard]] std::uint32_t slots_per_sector() const noexcept {
        return static_cast<std::uint32_t>(shape_.sector_bytes / slot_bytes);
    }
    void put(std::uint32_t slot, const directory_entry& raw) noexcept;
    void mark_dirty(std::uint32_t sector) noexcept;
    void occupy(slots which) noexcept;
    void vacate(slots which) noexcept;
    void mark_free(slots which) noexcept;
    [[nodiscard]] static slots set_of(const name_entry& of) noexcept {
        return {.first = of.first_slot, .count = of.slot - of.first_slot + 1};
    }
    void apply(slots gone) noexcept;
    void extend_to(slots which) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_instead_of(slots old, std::uint32_t count) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_for(std::uint32_t count) noexcept;
    [[nodiscard]] std::optional<std::uint32_t> room_in(std::uint32_t from, slots where) const noexcept;
    [[nodiscard]] result<void> wipe_behind_end() noexcept;
    void write_set(slots where, std::u16string_view name, const directory_entry& raw) noexcept;
    struct own_short_name {
        short_name raw;
        std::string alias;  // as it is shown; empty if it says the very name
    };
    [[nodiscard]] own_short_name unused_short_name(std::string_view name);
    [[nodiscard]] std::uint64_t offset_of(std::uint32_t sector) const noexcept;

    device& device_;
    const geometry& shape_;
    code_page page_;
    std::vector<std::byte> image_;
    std::vector<std::uint64_t> offsets_;  // on the device, of each cluster; of the fixed root one
    bool is_fixed_ = false;
    bool is_damaged_ = false;
    bool is_wiped_ = false;  // behind end_
    std::uint32_t end_ = 0;
    std::optional<std::uint32_t> label_slot_;

    name_index names_;
    std::unordered_map<std::string, std::uint32_t> next_number_;  // of a basis: none before is unused

    std::vector<bool> used_;
    std::vector<std::uint16_t> free_in_;  // per sector
    std::array<std::uint32_t, long_name_slots_max + 2>
        room_from_{};  // no sector before has that many in a row, unless vacated_from_ lies before
    std::uint32_t vacated_from_ = UINT32_MAX;

    std::vector<bool> dirty_;          // sectors
    std::vector<bool> after_another_;  // of those: to be written once the one before is durable
    std::size_t dirty_count_ = 0;
    std::vector<slots> removals_;   // sets whose entry leaves
    std::vector<slots> leftovers_;  // sets to be removed that names_ does not have
};

}  // namespace sluice::fat

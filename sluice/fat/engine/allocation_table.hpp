#pragma once

#include <atomic>
#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device.hpp"
#include "sluice/fat/engine/free_map.hpp"
#include "sluice/fat/may_wait.hpp"

namespace sluice::fat {

/// The cost of following chains.
struct table_counters {
    std::atomic<std::uint64_t> steps = 0;  // entries read to get from one cluster to another
    std::atomic<std::uint64_t> loads = 0;  // windows read from the device
};

/// Returns whether `what` is not empty and contains only clusters of the volume. Complexity:
/// constant.
[[nodiscard]] constexpr bool has_clusters(const geometry& shape, cluster_extent what) noexcept {
    return what.length != 0 and shape.is_cluster(what.first) and
           what.length <= shape.last_cluster() + 1 - what.first;
}

/// The file allocation table, in windows that are loaded on demand.
///
/// Changes stay in memory until flush(), which writes them to all active copies. There are two
/// kinds of changes: set() and chain_up() change entries to which no entry on the disk leads yet;
/// link() connects these to a chain that may already be on the disk, and never reaches the disk
/// before the former. Clusters chained up since the last flush are not on the disk, so a link
/// within them is an ordinary change.
///
/// Invariants:
///   1. A window in memory equals the copies on the device, except for its sectors in `dirty`.
///   2. Only windows that have no dirty sectors and are not being written are evicted.
///   3. links_ has the value that is on the device for every entry changed by link() since the last
///      flush.
///   4. Every entry is inside one window: FAT12's table is smaller than a window, the entries of
///      the other types are aligned.
/// Complexity: O(1) per entry. Allocates: windows, at most windows_max of them that are not dirty.
/// Blocks: for the device when a window is missing. Thread safety: any thread; one flush() at a
/// time.
class allocation_table {
public:
    static constexpr std::size_t window_bytes = 64U << 10;
    static constexpr std::size_t windows_max_default = 1024;

    /// `on` outlives the table.
    allocation_table(device& on, const geometry& shape, std::size_t windows_max = windows_max_default);

    /// Returns the entry of `cluster`, which is on the volume. Counts one step. Errors: EIO; EAGAIN
    /// if it may not wait and the window is not in memory, or another thread has locked the table.
    [[nodiscard]] result<table_entry> next(std::uint32_t cluster, may_wait waits = may_wait::yes) noexcept;
    /// Returns whether the entry of `cluster` is free. Counts no step. Errors: EIO.
    [[nodiscard]] result<bool> is_free(std::uint32_t cluster) noexcept;
    /// Returns the longest run of consecutive clusters of the chain that begins with `cluster`, at
    /// most `most` clusters, and the entry of the last one. Counts one step for each cluster.
    /// Errors: as next.
    struct segment {
        std::uint32_t length = 1;
        table_entry after;
    };
    [[nodiscard]] result<segment> follow(std::uint32_t cluster, std::uint32_t most,
                                         may_wait waits = may_wait::yes) noexcept;

    /// Sets each entry of `what` to the following cluster, and the last one to `last`, a value in
    /// the on-disk form. Returns the moment of the change, for link().
    /// Errors: EIO; then some entries may be set. Allocates: windows.
    using moment = std::uint64_t;
    [[nodiscard]] result<moment> chain_up(cluster_extent what, std::uint32_t last) noexcept;
    /// Sets all entries of `what` to `value`. Errors: as chain_up.
    [[nodiscard]] result<void> set(cluster_extent what, std::uint32_t value) noexcept;
    /// Sets the entries of `what` free, and returns those that were not free before. On a damaged
    /// volume, another file may have freed the others. Errors: as chain_up.
    [[nodiscard]] result<std::vector<cluster_extent>> free_up(cluster_extent what) noexcept;
    /// Continues the chain that ends with `cluster` with `next`. `made` is the moment when
    /// `cluster` was chained up, if known. Errors: as chain_up; EIO if the entry of `cluster` is
    /// free, because on a damaged volume another file with that cluster has freed it. After an
    /// error nothing has changed.
    [[nodiscard]] result<void> link(std::uint32_t cluster, std::uint32_t next,
                                    std::optional<moment> made = {}) noexcept;

    /// Writes the changes: first all but the links, then the links. If `is_ordered`, a barrier
    /// separates the two, if there are both; there is none at the end.
    /// Errors: those of the device; unwritten changes stay dirty. Blocks: for the device.
    [[nodiscard]] result<void> flush(bool is_ordered) noexcept;
    [[nodiscard]] bool is_dirty() const noexcept;
    /// Returns the number of bytes that a flush would write to each copy.
    [[nodiscard]] std::uint64_t dirty_bytes() const noexcept { return dirty_sectors_ * shape_.sector_bytes; }

    /// Returns the free clusters: those whose entry is free and to which no other entry leads. A
    /// crash may leave free clusters that an entry leads to; a file that allocated one would share
    /// it. Complexity: O(clusters). Errors: EIO. Allocates: 2 bits per cluster.
    [[nodiscard]] result<free_map> scan() noexcept;

    /// Returns FAT[0] or FAT[1]: the media byte and the flags. Errors: EIO.
    [[nodiscard]] result<std::uint32_t> reserved_entry(std::uint32_t index) noexcept;
    [[nodiscard]] result<void> set_reserved_entry(std::uint32_t index, std::uint32_t value) noexcept;

    [[nodiscard]] const table_counters& counters() const noexcept { return counters_; }

private:
    static constexpr std::size_t sectors_max = window_bytes / 512;
    struct window {
        std::vector<std::byte> bytes;
        std::uint64_t first_byte = 0;
        std::bitset<sectors_max> dirty;
        bool is_being_written = false;
        std::atomic<std::uint64_t> used_at = 0;
    };
    struct chunk {  // sectors to write
        std::size_t window = 0;
        std::size_t first_sector = 0;
        std::uint64_t first_byte = 0;
        std::vector<std::byte> bytes;
    };

    [[nodiscard]] window* loaded(std::uint32_t cluster) noexcept;
    [[nodiscard]] result<window*> load(std::uint32_t cluster) noexcept;
    void make_room() noexcept;
    [[nodiscard]] std::uint32_t end_of(const window& in) const noexcept;
    [[nodiscard]] std::uint32_t value_in(const window& in, std::uint32_t cluster) const noexcept;
    [[nodiscard]] result<std::uint32_t> value_of(std::uint32_t cluster, may_wait waits) noexcept;
    template <class ValueOf>
    [[nodiscard]] result<void> put(cluster_extent what, ValueOf value_of) noexcept;
    void scan_window(const window& in, std::uint32_t from, free_map& free, std::vector<bool>& is_followed);

    [[nodiscard]] std::vector<chunk> take_dirty(bool& has_links);
    template <class Visit>
    [[nodiscard]] result<void> for_each_link(const chunk& in, Visit visit) noexcept;
    [[nodiscard]] result<void> write_pass(const std::vector<chunk>& chunks, bool is_masked) noexcept;
    [[nodiscard]] result<void> write_links(const std::vector<chunk>& chunks) noexcept;
    [[nodiscard]] result<void> write_copies(std::uint64_t first_byte,
                                            std::span<const std::byte> bytes) noexcept;
    void finish(const std::vector<chunk>& chunks, bool is_written) noexcept;

    device& device_;
    geometry shape_;
    std::size_t windows_max_;
    mutable std::shared_mutex mutex_;  // guards the members below, except atomics
    std::vector<std::unique_ptr<window>> windows_;
    std::size_t loaded_count_ = 0;
    std::atomic<std::uint64_t> dirty_sectors_ = 0;
    std::atomic<std::uint64_t> ticks_ = 0;
    moment flushes_ = 0;                                     // number of flushes begun
    std::map<std::uint32_t, std::uint32_t> links_;           // values on the device
    std::map<std::uint32_t, std::uint32_t> links_in_flush_;  // owned by the flush in progress
    table_counters counters_;
};

}  // namespace sluice::fat

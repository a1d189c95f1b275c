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

/// What following chains has cost.
struct table_counters {
    std::atomic<std::uint64_t> steps = 0;  // entries looked at to get from one cluster to another
    std::atomic<std::uint64_t> loads = 0;  // windows read from the device
};

/// Returns whether `what` is not empty, and all of it are clusters of the volume. Complexity: constant.
[[nodiscard]] constexpr bool has_clusters(const geometry& shape, cluster_extent what) noexcept {
    return what.length != 0 and shape.is_cluster(what.first) and
           what.length <= shape.last_cluster() + 1 - what.first;
}

/// The file allocation table, in windows that are read when they are needed.
///
/// Changes stay in memory until flush(), which writes them to every copy that is kept. Two kinds are told
/// apart: set() and chain_up() say what nothing on the disk leads to yet; link() joins that to a chain that
/// may be there already, and never reaches the disk before the former. What was chained up since the last
/// flush is not there: a link within that is no more than an entry.
///
/// Invariants:
///   1. A window in memory is as the copies on the device, but for its sectors in `dirty`.
///   2. Only windows without dirty sectors that nobody is writing are forgotten.
///   3. links_ has the value that is on the device for every entry changed by link() since the last flush.
///   4. Every entry is inside one window: FAT12's table is smaller than one, the others' entries are aligned.
/// Complexity: O(1) an entry. Allocates: windows, at most windows_max of them that are not dirty. Blocks: for
/// the device when a window is missing. Thread safety: any thread; flush() one at a time.
class allocation_table {
public:
    static constexpr std::size_t window_bytes = 64U << 10;
    static constexpr std::size_t windows_max_default = 1024;

    /// `on` outlives the table.
    allocation_table(device& on, const geometry& shape, std::size_t windows_max = windows_max_default);

    /// What follows `cluster`, which is one of the volume. One step. Errors: EIO; EAGAIN if it may not wait
    /// and the window is not in memory, or somebody is about to change that.
    [[nodiscard]] result<table_entry> next(std::uint32_t cluster, may_wait waits = may_wait::yes) noexcept;
    /// Whether the entry of `cluster` says free. No step. Errors: EIO.
    [[nodiscard]] result<bool> is_free(std::uint32_t cluster) noexcept;
    /// As far as the chain goes on from `cluster` with the one behind it, at most `most` clusters, and what
    /// follows the last of them. As many steps. Errors: as next.
    struct stretch {
        std::uint32_t length = 1;
        table_entry after;
    };
    [[nodiscard]] result<stretch> follow(std::uint32_t cluster, std::uint32_t most,
                                         may_wait waits = may_wait::yes) noexcept;

    /// Sets the entries of `what` each to the cluster behind it, the last one to `last`, a value as it stands
    /// on the disk. Says when, for link().
    /// Errors: EIO, and then some may be set. Allocates: windows.
    using moment = std::uint64_t;
    [[nodiscard]] result<moment> chain_up(cluster_extent what, std::uint32_t last) noexcept;
    /// Sets the entries of `what` all to `value`. Errors: as chain_up.
    [[nodiscard]] result<void> set(cluster_extent what, std::uint32_t value) noexcept;
    /// Sets the entries of `what` free, and says which of them were not: of a damaged volume, another file
    /// may have given them up before. Errors: as chain_up.
    [[nodiscard]] result<std::vector<cluster_extent>> free_up(cluster_extent what) noexcept;
    /// Lets `cluster`, the last of a chain, go on with `next`. `made` is when it was chained up, if that is
    /// known. Errors: as chain_up; EIO if the entry of `cluster` is free, which was set by another file that
    /// had the cluster, too, on a damaged volume. After an error nothing has changed.
    [[nodiscard]] result<void> link(std::uint32_t cluster, std::uint32_t next,
                                    std::optional<moment> made = {}) noexcept;

    /// Writes what has changed: first all but the links, then these. With `is_ordered` barriers come between
    /// the two, if there are both, none at the end.
    /// Errors: of the device; what was not written stays to be. Blocks: for the device.
    [[nodiscard]] result<void> flush(bool is_ordered) noexcept;
    [[nodiscard]] bool is_dirty() const noexcept;
    /// Bytes that a flush would write to each copy.
    [[nodiscard]] std::uint64_t dirty_bytes() const noexcept { return dirty_sectors_ * shape_.sector_bytes; }

    /// Which clusters are free: those whose entry says so and to which no other leads (a crash may leave
    /// such, and who took them would share them). Complexity: O(clusters). Errors: EIO. Allocates: 2 bits a
    /// cluster.
    [[nodiscard]] result<free_map> scan() noexcept;

    /// FAT[0] and FAT[1]: the media byte and the flags. Errors: EIO.
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
    struct chunk {  // sectors to be written
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
    mutable std::shared_mutex mutex_;  // guards what follows, but for the atomics
    std::vector<std::unique_ptr<window>> windows_;
    std::size_t loaded_count_ = 0;
    std::atomic<std::uint64_t> dirty_sectors_ = 0;
    std::atomic<std::uint64_t> ticks_ = 0;
    moment flushes_ = 0;                                     // begun so far
    std::map<std::uint32_t, std::uint32_t> links_;           // what is on the device
    std::map<std::uint32_t, std::uint32_t> links_in_flush_;  // of one flush; its own
    table_counters counters_;
};

}  // namespace sluice::fat

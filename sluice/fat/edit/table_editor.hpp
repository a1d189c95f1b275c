#pragma once

#include <set>

#include "sluice/fat/edit/chain_map.hpp"

namespace sluice::fat {

/// Changes to a FAT, collected and then written together to all active copies.
///
/// Invariant: `table_` is the active FAT with all changes; the pieces that differ from the disk are
/// in `changed_`. Thread safety: none of its own.
class table_editor {
public:
    /// Loads the active copy. Errors: as chain_map::load.
    [[nodiscard]] static result<table_editor> load(device& image, const geometry& shape);

    [[nodiscard]] std::uint32_t value(std::uint32_t cluster) const noexcept;
    [[nodiscard]] table_entry entry(std::uint32_t cluster) const noexcept {
        return shape_.classify(value(cluster));
    }
    void set(std::uint32_t cluster, std::uint32_t value);
    void end_chain(std::uint32_t cluster) { set(cluster, end_entry(shape_.type)); }
    /// Returns a free cluster, now the end of a separate chain, or std::nullopt if there is none.
    /// Skips a free cluster to which an entry led when the table was loaded, because a damaged
    /// chain would continue in it. Complexity: amortised O(1), after O(clusters) in the first call.
    /// Allocates: one bit per cluster.
    [[nodiscard]] std::optional<std::uint32_t> allocate();

    /// Writes the changes to the active copy or, if the copies are mirrored, to all. Errors: those
    /// of the device.
    [[nodiscard]] result<void> flush();

private:
    static constexpr std::uint64_t piece_bytes = 4096;
    static constexpr std::uint64_t write_bytes_max = 1 << 20;

    void find_referenced();

    table_editor(device& image, const geometry& shape, std::vector<std::byte> table)
        : image_(image), shape_(shape), table_(std::move(table)) {}

    device& image_;
    geometry shape_;
    std::vector<std::byte> table_;
    std::set<std::uint64_t> changed_;
    std::uint32_t next_free_ = geometry::first_cluster;
    std::vector<bool> is_referenced_;  // by cluster; empty until it is needed
};

}  // namespace sluice::fat

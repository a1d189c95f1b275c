#pragma once

#include <vector>

#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// A complete FAT in memory with an owner for each cluster. Check and repair use it because they
/// visit every cluster; a mounted volume reads its FAT in pieces.
///
/// Invariants:
///   1. `table_` holds the entries of all clusters, so no lookup of a cluster fails.
///   2. Every cluster gets an owner at most once. So even if chains cross or are cyclic, following
///      all of them takes as many steps as there are clusters, plus one for each chain.
/// Memory: the size of the FAT, and 4 bytes per cluster. load() has checked that the device is
/// large enough for that FAT.
/// Thread safety: none of its own.
class chain_map {
public:
    using object = std::uint32_t;
    static constexpr object nobody = 0;

    /// Reads copy `copy` of the FAT. Errors: those of the device; EIO if the device is too short
    /// for the FAT.
    [[nodiscard]] static result<chain_map> load(device& image, const geometry& shape, std::uint32_t copy);

    [[nodiscard]] std::uint32_t value(std::uint32_t cluster) const noexcept;
    [[nodiscard]] table_entry entry(std::uint32_t cluster) const noexcept {
        return shape_.classify(value(cluster));
    }
    /// Returns the number of clusters with an owner.
    [[nodiscard]] std::uint64_t owned() const noexcept { return owned_; }
    [[nodiscard]] object owner(std::uint32_t cluster) const noexcept { return owners_[cluster]; }
    /// Returns whether the cluster can be part of a chain: it is on the volume, and neither free
    /// nor bad.
    [[nodiscard]] bool is_in_use(std::uint32_t cluster) const noexcept;
    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }

    enum class ending : std::uint8_t { whole, broken, loop, crossed };
    struct outcome {
        ending how = ending::whole;
        std::uint32_t length = 0;     // clusters now owned
        std::uint32_t last = 0;       // the last of these; 0: none
        std::uint32_t leads_to = 0;   // if incomplete: the cluster that could not be added
        std::uint32_t at_length = 0;  // the cluster at which `mark_at` clusters
                                      // were reached; 0: fewer
    };
    /// Assigns the clusters of the chain from `first` to `owner`. Complexity: linear in its length.
    [[nodiscard]] outcome take(std::uint32_t first, object owner, std::uint64_t mark_at = 0) noexcept;

private:
    chain_map(const geometry& shape, std::vector<std::byte> table)
        : shape_(shape), table_(std::move(table)), owners_(std::size_t{shape.last_cluster()} + 1, nobody) {}

    geometry shape_;
    std::vector<std::byte> table_;
    std::vector<object> owners_;
    std::uint64_t owned_ = 0;
};

}  // namespace sluice::fat

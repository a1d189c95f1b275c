#pragma once

#include <vector>

#include "sluice/fat/codec/geometry.hpp"
#include "sluice/fat/device.hpp"

namespace sluice::fat {

/// A whole FAT in memory, and for each cluster the object it was found to belong to. For check and repair,
/// which visit every cluster; the volume reads its FAT piece by piece.
///
/// Invariants:
///   1. `table_` holds the entries of all clusters, so no look-up of a cluster fails.
///   2. Every cluster is given an owner at most once: however chains cross and loop, following all of them
///      takes as many steps as there are clusters, and one more for each chain.
/// Memory: as the FAT on disk, and 4 bytes per cluster; the device was found to have that FAT before.
/// Thread safety: none of its own.
class chain_map {
public:
    using object = std::uint32_t;
    static constexpr object nobody = 0;

    /// Reads copy `copy` of the FAT. Errors: of the device; EIO if it is too short for the FAT.
    [[nodiscard]] static result<chain_map> load(device& image, const geometry& shape, std::uint32_t copy);

    [[nodiscard]] std::uint32_t value(std::uint32_t cluster) const noexcept;
    [[nodiscard]] table_entry entry(std::uint32_t cluster) const noexcept {
        return shape_.classify(value(cluster));
    }
    /// How many clusters have an owner.
    [[nodiscard]] std::uint64_t owned() const noexcept { return owned_; }
    [[nodiscard]] object owner(std::uint32_t cluster) const noexcept { return owners_[cluster]; }
    /// Whether it can be part of a chain: a cluster of the volume, neither free nor bad.
    [[nodiscard]] bool is_in_use(std::uint32_t cluster) const noexcept;
    [[nodiscard]] const geometry& shape() const noexcept { return shape_; }

    enum class ending : std::uint8_t { whole, broken, loop, crossed };
    struct outcome {
        ending how = ending::whole;
        std::uint32_t length = 0;     // clusters now owned
        std::uint32_t last = 0;       // the last of them; 0: none
        std::uint32_t leads_to = 0;   // if not whole: what could not be taken
        std::uint32_t at_length = 0;  // the cluster at which `mark_at` clusters were reached; 0: fewer
    };
    /// Gives the chain from `first` to `owner`. Complexity: linear in its length.
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

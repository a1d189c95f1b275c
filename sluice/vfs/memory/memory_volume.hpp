#pragma once

#include "sluice/base/clock.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/vfs/memory/memory_quotas.hpp"
#include "sluice/vfs/memory/memory_volume_options.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::vfs {

class memory_tree;

/// A volume that exists in memory only, with all features; shared blocks can be emulated. For
/// tests, in particular of a complete server in a simulation: its behaviour depends only on the
/// calls, the clock and the seed. A listing is sorted by folded names.
///
/// Outlives its nodes, listings and watches. Monitor. Thread safety: as volume.
class memory_volume final : public volume {
public:
    /// `clock` outlives the volume. Allocates: yes.
    memory_volume(io::io_multiplexer& multiplexer, const clock_source& clock,
                  const memory_volume_options& options = {});
    ~memory_volume() override;

    [[nodiscard]] const volume_features& features() const noexcept override { return features_; }
    [[nodiscard]] const volume_identity& identity() const noexcept override { return identity_; }
    [[nodiscard]] result<volume_space> space() noexcept override;
    [[nodiscard]] result<node_ptr> find(std::string_view path, follow_links links) noexcept override;
    [[nodiscard]] result<node_ptr> create(std::string_view path,
                                          const creation_request& wanted) noexcept override;
    void serve_on(std::span<io::io_multiplexer* const> loops) override;
    [[nodiscard]] change_feed* changes() noexcept override;
    [[nodiscard]] volume_quotas* quotas() noexcept override { return quotas_.get(); }

    /// Sets the faults to simulate from now on.
    void set_faults(const memory_faults& faults) noexcept;
    /// Sets memory_volume_options::emulates_block_sharing. Only before the volume is in use.
    void emulate_block_sharing() noexcept;
    /// Offers quotas, and acts as a host user with this number. Only before the volume is in use.
    memory_quotas& offer_quotas(std::uint32_t acts_as);
    /// Reports that files have no named streams. Only before the volume is in use.
    void omit_streams() noexcept { features_.has_streams = false; }

private:
    std::unique_ptr<memory_tree> tree_;
    volume_features features_;
    volume_identity identity_;
    std::unique_ptr<memory_quotas> quotas_;  // null: not offered
};

}  // namespace sluice::vfs

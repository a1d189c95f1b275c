#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sluice/vfs/host/name/name_patterns.hpp"

namespace sluice::vfs {

/// The recycle bin of a host volume.
struct recycle_rules {
    std::string directory = ".recycle";  // a name in the root
    name_patterns excluded{};            // files with such a name in their path are removed
    bool keeps_versions = true;          // false: a file replaces the one of its name
    std::chrono::seconds age_max{0};     // since the removal; 0: unlimited
    std::uint64_t bytes_max = 0;         // of all files together; 0: unlimited

    [[nodiscard]] friend bool operator==(const recycle_rules&, const recycle_rules&) noexcept = default;
};

}  // namespace sluice::vfs

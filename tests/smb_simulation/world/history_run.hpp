#pragma once

#include <cstdint>

#include "tests/smb_simulation/world/directory_model.hpp"

namespace sluice::smb_simulation {

/// Runs up to six clients, each on its own connection, on one directory of a server on three loops.
/// Returns their operations: up to eight each, drawn from a seed. Blocks: for a few milliseconds.
[[nodiscard]] history record_history(std::uint64_t seed);

}  // namespace sluice::smb_simulation

#pragma once

#include <cstdint>

#include "tests/smb_simulation/directory_model.hpp"

namespace sluice::smb_simulation {

/// What up to six clients, each on a connection of its own, did to one directory of a server on three loops:
/// up to eight operations each, drawn from a seed. Blocks: some milliseconds.
[[nodiscard]] history record_history(std::uint64_t seed);

}  // namespace sluice::smb_simulation

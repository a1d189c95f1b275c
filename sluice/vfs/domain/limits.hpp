#pragma once

#include <cstddef>

namespace sluice::vfs::limits {

/// The largest number of file systems with their own domain. Further ones share a domain whose
/// calls are offloaded.
inline constexpr std::size_t domains_max = 256;

}  // namespace sluice::vfs::limits

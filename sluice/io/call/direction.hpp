#pragma once

#include <cstdint>

namespace sluice::io {

/// The two directions of a stream; requests in one direction are served in the
/// order they were started.
enum class direction : std::uint8_t { in, out };

}  // namespace sluice::io

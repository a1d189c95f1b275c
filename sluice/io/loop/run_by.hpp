#pragma once

#include <cstdint>

namespace sluice::io {

/// The number of threads that may use a multiplexer; see io_multiplexer::is_for_threads().
enum class run_by : std::uint8_t { one, several };

}  // namespace sluice::io

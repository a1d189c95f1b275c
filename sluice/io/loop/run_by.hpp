#pragma once

#include <cstdint>

namespace sluice::io {

/// By how many threads a multiplexer may be used; see io_multiplexer::is_for_threads().
enum class run_by : std::uint8_t { one, several };

}  // namespace sluice::io

#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// Reads one at a time, each timed, as in the peers' documentation: the completion of a read starts
/// the next. They close `descriptor`.
void uv_pipe_latency(run& repeat);
void uv_file_latency(run& repeat, int descriptor);
void asio_file_latency(run& repeat, int descriptor);

}  // namespace sluice::bench::peers

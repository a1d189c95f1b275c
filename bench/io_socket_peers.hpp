#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// Echo servers by others, each as its own documentation does it, and the bare system calls.
void echo_blocking(run& repeat);  // one connection
void echo_epoll(run& repeat, unsigned connections);
void echo_asio(run& repeat, unsigned connections);
void echo_uv(run& repeat, unsigned connections);
void echo_uring(run& repeat, unsigned connections);

}  // namespace sluice::bench::peers

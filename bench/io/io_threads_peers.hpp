#pragma once

#include <functional>

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// Measures a server with `threads` threads: `begin` on one, then `serve` on each. The CPU time
/// counted is the sum of theirs, without the client's.
void run_threads(run& repeat, unsigned threads, const std::function<void()>& begin,
                 const std::function<void()>& serve);

/// The bare system calls: all threads wait on one epoll, which gives each event to one of them
/// (EPOLLONESHOT).
void echo_epoll_threads(run& repeat, unsigned connections, unsigned threads);

/// An echo server on Asio's io_context, run by `threads` threads. No strand is needed: each handler
/// starts the next one of its connection.
void echo_asio_threads(run& repeat, unsigned connections, unsigned threads);

}  // namespace sluice::bench::peers

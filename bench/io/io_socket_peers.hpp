#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// Echo servers of peers, each as in its own documentation, and the bare system calls.
void echo_blocking(run& repeat);  // one connection
void echo_epoll(run& repeat, unsigned connections);
/// On one connection: tries to receive before it waits, as an operation of P2052 does on start.
void echo_epoll_trying(run& repeat);
/// No server: only the two calls, on one connection after the other, which each time has its byte,
/// or soon will. The cost of TCP itself.
void echo_in_turn(run& repeat, unsigned connections);
void echo_asio(run& repeat, unsigned connections);
void echo_uv(run& repeat, unsigned connections);
void echo_uring(run& repeat, unsigned connections);
/// On one connection: the ring receives and a call sends, as an operation of P2052 does on start.
void echo_uring_and_send(run& repeat);

}  // namespace sluice::bench::peers

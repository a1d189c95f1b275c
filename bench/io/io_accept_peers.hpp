#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// accept4 after each poll, until there is nothing left to accept.
void accept_calls(run& repeat, unsigned burst);
/// Asio's async_accept, one after the other.
void accept_asio(run& repeat, unsigned burst);
/// One multishot ACCEPT. Its completion does not name the peer: with `asks`, getpeername does.
void accept_multishot(run& repeat, unsigned burst, bool asks);

}  // namespace sluice::bench::peers

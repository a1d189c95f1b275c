#pragma once

#include "bench/harness/benchmark.hpp"

namespace sluice::bench::peers {

/// accept4 after each poll, until there is nothing left to accept.
void accept_calls(run& repeat, unsigned burst);
/// Asio's async_accept, one after the other.
void accept_asio(run& repeat, unsigned burst);
/// One multishot ACCEPT. It does not say who has connected: `asks` does, by getpeername.
void accept_multishot(run& repeat, unsigned burst, bool asks);

}  // namespace sluice::bench::peers

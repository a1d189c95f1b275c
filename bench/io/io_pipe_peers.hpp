#pragma once

#include <time.h>

#include <cstdint>

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {

/// Measures the time since the last lap, in nanoseconds; about 30 ns of it are its own.
class stopwatch {
public:
    std::uint64_t lap() noexcept {
        const std::uint64_t now = read();
        const std::uint64_t since = now - last_;
        last_ = now;
        return since;
    }

private:
    static std::uint64_t read() noexcept {
        timespec time{};
        (void)clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(time.tv_nsec);
    }
    std::uint64_t last_ = read();
};

namespace peers {

/// The same work by peers, each as in its own documentation: the completion of a read starts the
/// next.
void asio_read(run& repeat);
void asio_latency(run& repeat);
void uv_read(run& repeat);
void uring_read(run& repeat, unsigned in_flight);

}  // namespace peers
}  // namespace sluice::bench

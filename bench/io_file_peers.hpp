#pragma once

#include <cstdint>

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {

/// The same sequence of offsets for every subject.
class random_reads {
public:
    static constexpr std::uint64_t file_bytes = 64U << 20;
    static constexpr std::uint32_t bytes = 4096;

    std::uint64_t offset() noexcept {
        state_ = state_ * 1664525U + 1013904223U;  // the leading bits of this generator are good enough
        return (state_ >> 18) * std::uint64_t{bytes};
    }

private:
    std::uint32_t state_ = 1;
};
static_assert((std::uint64_t{0xffff'ffffU} >> 18) * random_reads::bytes < random_reads::file_bytes);

namespace peers {

void uring_reads(run& repeat, int file, unsigned in_flight);
void uv_reads(run& repeat, int file, unsigned in_flight);

}  // namespace peers
}  // namespace sluice::bench

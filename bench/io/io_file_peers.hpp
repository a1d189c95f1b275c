#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "bench/harness/benchmark.hpp"

struct io_uring;

namespace sluice::bench {

/// A sequence of offsets, the same for every subject.
class random_reads {
public:
    static constexpr std::uint64_t file_bytes = 64U << 20;
    static constexpr std::uint32_t bytes = 4096;

    std::uint64_t offset() noexcept {
        // The leading bits of this generator are good enough.
        state_ = state_ * 1664525U + 1013904223U;
        return (state_ >> 18) * std::uint64_t{bytes};
    }

private:
    std::uint32_t state_ = 1;
};
static_assert((std::uint64_t{0xffff'ffffU} >> 18) * random_reads::bytes < random_reads::file_bytes);

namespace peers {

/// A hand-written ring, as fast as possible: single issuer, deferred task work, registered file and
/// buffers.
class uring_reader {
public:
    /// Reads the file into the blocks of `memory`, as many at a time as it has.
    uring_reader(int file, std::span<std::byte> memory);
    uring_reader(const uring_reader&) = delete;
    uring_reader& operator=(const uring_reader&) = delete;
    ~uring_reader();

    [[nodiscard]] bool is_refused() const noexcept { return ring_ == nullptr; }
    void read(std::uint64_t operations, random_reads& next);

private:
    void queue(std::uint64_t block, random_reads& next);

    std::span<std::byte> memory_;
    std::unique_ptr<io_uring> ring_;
};
void uv_reads(run& repeat, int file, unsigned in_flight);

}  // namespace peers
}  // namespace sluice::bench

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice::bench {

/// The CPU's counters for one thread in user space: cycles, instructions, and loads that missed the
/// L1 data cache, by perf_event_open(2). Virtual machines often have no such counters; then there
/// are no figures, and callgrind is an alternative (bench/range_lock_counters.py). Thread safety:
/// the thread that constructs it.
class hardware_counters {
public:
    struct event {
        std::uint32_t type;
        std::uint64_t config;
    };
    static constexpr std::size_t count = 3;
    struct counts {
        double cycles = 0;
        double instructions = 0;
        double l1_misses = 0;
    };

    hardware_counters() noexcept;
    /// Counts other events instead of the three, for the test on machines without them.
    explicit hardware_counters(const std::array<event, count>& events) noexcept;
    hardware_counters(const hardware_counters&) = delete;
    hardware_counters& operator=(const hardware_counters&) = delete;
    ~hardware_counters();

    void start() noexcept;
    /// Returns the counts since start(), or std::nullopt if this machine, or its administrator,
    /// does not permit counting.
    [[nodiscard]] std::optional<counts> stop() noexcept;

private:
    std::array<int, count> descriptors_{-1, -1, -1};  // the first leads the group
};

}  // namespace sluice::bench

#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::bench {

/// A histogram of durations in buckets whose width grows with the duration: each is at most 1/64 of
/// its values, from one nanosecond to five centuries, in 30 KiB that are part of the object. So
/// recording one allocates nothing and costs a few instructions, and the tail is complete however
/// long the run. Thread safety: one thread; merge() joins.
class latency_histogram {
public:
    /// Complexity: constant.
    void record(std::uint64_t ns) noexcept {
        ++counts_[bucket_of(ns)];
        ++count_;
        if (ns > max_) max_ = ns;
    }

    void merge(const latency_histogram& other) noexcept;

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t max() const noexcept { return max_; }

    /// Returns the duration that `fraction` of the records (0.99 for p99) do not exceed, rounded up
    /// to the end of its bucket but never past max(). Returns zero without records.
    [[nodiscard]] std::uint64_t percentile(double fraction) const noexcept;

    /// Returns whether the tail above `fraction` has at least one record: without one, that
    /// percentile is only max().
    [[nodiscard]] bool resolves(double fraction) const noexcept;

private:
    // A value of up to `exact_bits` bits has its own bucket. The leading `exact_bits` bits of a
    // longer one select among half as many buckets (the first bit is always set), and its length
    // selects the group.
    static constexpr unsigned exact_bits = 7;
    static constexpr std::size_t exact = std::size_t{1} << exact_bits;
    static constexpr std::size_t bucket_count = exact + (64 - exact_bits) * (exact / 2);

    static constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
        if (ns < exact) return static_cast<std::size_t>(ns);
        const unsigned dropped_bits = static_cast<unsigned>(std::bit_width(ns)) - exact_bits;
        const std::size_t group = exact + (dropped_bits - 1) * (exact / 2);
        return group + static_cast<std::size_t>((ns >> dropped_bits) - exact / 2);
    }
    static constexpr std::uint64_t bucket_end(std::size_t bucket) noexcept {
        if (bucket < exact) return bucket;
        const std::size_t dropped_bits = (bucket - exact) / (exact / 2) + 1;
        const std::uint64_t leading = (bucket - exact) % (exact / 2) + exact / 2;
        return (leading << dropped_bits) + ((std::uint64_t{1} << dropped_bits) - 1);
    }

    std::array<std::uint64_t, bucket_count> counts_{};
    std::uint64_t count_ = 0;
    std::uint64_t max_ = 0;
};

}  // namespace sluice::bench

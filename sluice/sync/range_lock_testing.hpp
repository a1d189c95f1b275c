#pragma once

#include "sluice/sync/range_lock_slow.hpp"

// For the tests of range locks.

namespace sluice::sync {

[[nodiscard]] inline lock_args exclusive(std::uint64_t first, std::uint64_t last) noexcept {
    return {.where = byte_range::between({.first = first, .last = last})};
}
[[nodiscard]] inline lock_args shared(std::uint64_t first, std::uint64_t last) noexcept {
    return {.where = byte_range::between({.first = first, .last = last}), .mode = lock_mode::shared};
}

/// Makes a lock change its form constantly.
struct hot_tuning {
    static constexpr std::uint32_t contention_max = 1;
    static constexpr unsigned buckets_log2_first = 1;
    static constexpr unsigned buckets_log2_max = 5;
    static constexpr std::uint32_t full_bucket_requests_max = 2;
    static constexpr std::uint32_t leaves_per_note = 1;
    static constexpr std::uint32_t notes_per_check = 2;
    static constexpr std::uint32_t single_thread_checks_max = 1;
    static constexpr std::uint32_t wide_per_check_max = 5;
    static constexpr std::uint32_t nesting_max = 1;
};
struct hot_atomics : real_atomics {
    using tuning = hot_tuning;
};

/// A request that records its outcome.
template <class Atomics>
class basic_remembered_request final : public basic_range_request<Atomics> {
public:
    ~basic_remembered_request() = default;
    int completions = 0;
    bool is_granted = false;

private:
    void completed(bool granted) noexcept override {
        ++completions;
        is_granted = granted;
    }
};

}  // namespace sluice::sync

#pragma once

#include "sluice/sync/range_lock.hpp"

// For the tests of range locks.

namespace sluice::sync {

[[nodiscard]] inline lock_args exclusive(std::uint64_t first, std::uint64_t last) noexcept {
    return {.where = byte_range::between({.first = first, .last = last})};
}
[[nodiscard]] inline lock_args shared(std::uint64_t first, std::uint64_t last) noexcept {
    return {.where = byte_range::between({.first = first, .last = last}), .mode = lock_mode::shared};
}

/// A request that remembers how it ended.
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

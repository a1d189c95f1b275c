#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::smb::server {

/// A counter with one writer and any number of readers.
class published_counter {
public:
    explicit published_counter(std::uint64_t first = 0) noexcept : value_(first) {}
    // acquire and release: a thread that reads several counts reads them in this order.
    [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_release); }

private:
    std::atomic<std::uint64_t> value_;
};

}  // namespace sluice::smb::server

#pragma once

#include <atomic>
#include <cstdint>

#include "sluice/vfs/node_data.hpp"

// Internal to the volumes.

namespace sluice::vfs {

/// The kinds of transfer for which a node's data was opened. Atomic. Thread safety: any thread. A
/// thread that observes an access also observes all effects before its add().
class granted_access {
public:
    [[nodiscard]] bool can_read() const noexcept { return (load() & read_bit) != 0; }
    [[nodiscard]] bool can_write() const noexcept { return (load() & write_bit) != 0; }

    void add(data_access more) noexcept {
        const auto bits =
            static_cast<std::uint8_t>((more.read ? read_bit : 0U) | (more.write ? write_bit : 0U));
        bits_.fetch_or(bits, std::memory_order_release);  // pairs with the acquire in load()
    }
    void revoke() noexcept { bits_.store(0, std::memory_order_relaxed); }

private:
    static constexpr std::uint8_t read_bit = 1;
    static constexpr std::uint8_t write_bit = 2;

    [[nodiscard]] std::uint8_t load() const noexcept { return bits_.load(std::memory_order_acquire); }

    std::atomic<std::uint8_t> bits_{0};
};

}  // namespace sluice::vfs

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sluice/smb/server/net/read_path.hpp"
#include "sluice/smb/server/report/traffic.hpp"

namespace sluice::smb::server {

/// The number of uses of each I/O path, and the bytes that it transferred, since the loop began.
/// Thread safety: the loop's thread writes; any thread reads.
class path_counters {
public:
    struct counts {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
    };

    void add(read_path taken, std::size_t bytes) noexcept {
        reads_[static_cast<std::size_t>(taken)].add(bytes);
    }

    [[nodiscard]] counts of(read_path which) const noexcept {
        return reads_[static_cast<std::size_t>(which)].now();
    }

private:
    struct counter {
        event_counter requests;
        event_counter bytes;

        void add(std::size_t more) noexcept {
            requests.add();
            bytes.add(more);
        }
        [[nodiscard]] counts now() const noexcept {
            return {.requests = requests.value(), .bytes = bytes.value()};
        }
    };

    std::array<counter, read_paths> reads_;  // by read_path
};

}  // namespace sluice::smb::server

#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sluice/sync/byte_range.hpp"

namespace sluice::sync {

/// The lengths of ranges, as powers of two. Thread safety: none.
class range_lengths {
public:
    static constexpr unsigned log2_max = 63;

    void add(const byte_range& range) noexcept {
        const unsigned log2 =
            range.is_empty() ? 0 : static_cast<unsigned>(std::bit_width(range.last() - range.first()));
        ++counts_[log2 < log2_max ? log2 : log2_max];
        ++total_;
    }
    /// Returns the exponent of the least power of two that three quarters of the ranges do not
    /// exceed, or a few less where there are few: a single much longer one does not count. Returns
    /// 0 without ranges.
    [[nodiscard]] unsigned usual_log2() const noexcept {
        if (total_ == 0) return 0;
        const std::uint64_t rank = (total_ - 1) * 3 / 4;
        std::uint64_t below = 0;
        unsigned log2 = 0;
        while (below += counts_[log2], below <= rank)
            ++log2;
        return log2;
    }

private:
    std::array<std::uint32_t, log2_max + 1> counts_{};
    std::uint64_t total_ = 0;
};

}  // namespace sluice::sync

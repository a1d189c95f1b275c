#pragma once

#include <bitset>
#include <cstdint>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/core/published_counter.hpp"

namespace sluice::smb::server {

/// The message ids that a client may use: its credits ([MS-SMB2] 3.3.1.1, 3.3.1.2).
///
/// A window of ids begins at the lowest one not yet used. Each granted id can be used once, in any
/// order; ids are granted at the window's end. So one bit shows whether a message is replayed, or
/// is beyond the granted ids.
///
/// Invariants: ids in [first_, end_) have been granted; bit (id mod capacity) of `used_` shows
/// which of them have been used, and outstanding() have not; end_ - first_ <= capacity, because a
/// client that never uses its lowest id could otherwise make the window grow indefinitely.
/// Complexity: O(charge). Thread safety: one thread; outstanding() any.
class credit_window {
public:
    static constexpr std::uint64_t capacity = 2 * limits::credits_max;

    /// One credit: for the first NEGOTIATE.
    credit_window() noexcept = default;

    /// Uses the ids of a request: `charge` of them from `message_id` on. Returns false if any was
    /// not granted or is already used. Then none is used, and the caller closes the connection.
    [[nodiscard]] bool use(std::uint64_t message_id, std::uint16_t charge) noexcept;

    /// Grants up to `asked` more (at least one if the window would otherwise be empty), so that no
    /// more than `outstanding_max` stay granted and unused. Returns how many.
    [[nodiscard]] std::uint16_t grant(std::uint16_t asked, std::uint16_t outstanding_max) noexcept;

    /// Returns the number of ids that are granted and not used.
    [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_.value(); }

private:
    std::uint64_t first_ = 0;
    std::uint64_t end_ = 1;
    published_counter outstanding_{1};
    std::bitset<capacity> used_;
};

}  // namespace sluice::smb::server

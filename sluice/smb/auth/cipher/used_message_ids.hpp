#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace sluice::smb::auth {

/// The message ids that one AES-GMAC key has signed for one sender, and thus its nonces ([MS-SMB2]
/// 3.1.4.1). Two messages with one nonce reveal the key, so that an attacker can forge messages.
///
/// Replies are sent in any order, and some requests wait for hours, so a window of recent ids is
/// not enough. The set is exact: all ids below the highest, except for a list of gaps, one for each
/// request in between that has no reply yet.
///
/// Invariants: gaps are disjoint, not adjacent, in ascending order, and below `next_`; there
/// are at most limits::unsigned_gaps_max. Beyond that, the oldest gap is dropped: its ids
/// cannot be claimed any more.
/// Thread safety: none of its own. Allocates: for gaps, up to the largest number so far.
/// Complexity: claim() in the order of the ids: constant; otherwise O(gaps).
class used_message_ids {
public:
    struct range {
        std::uint64_t first = 0;
        std::uint64_t end = 0;  // not included
    };
    enum class claim_result : std::uint8_t {
        fresh,    ///< now used
        used,     ///< claimed before
        unknown,  ///< outside of the range, or in a gap that was dropped: possibly used
    };

    /// Constructs an empty set. Only ids in `allowed` can be claimed.
    explicit used_message_ids(range allowed = {.first = 0,
                                               .end = std::numeric_limits<std::uint64_t>::max()}) noexcept
        : allowed_(allowed), next_(allowed.first) {}

    /// The id of messages that are not replies ([MS-SMB2] 2.2.1). It is allowed once, if the
    /// allowed range has no other end: a notification that a session is closed is the last message
    /// of its key.
    static constexpr std::uint64_t unsolicited_id = std::numeric_limits<std::uint64_t>::max();

    /// Uses `count` ids from `first` on, all or none.
    [[nodiscard]] claim_result claim(std::uint64_t first, std::uint64_t count) noexcept;

    [[nodiscard]] std::size_t gaps() const noexcept { return gaps_.size(); }

private:
    [[nodiscard]] claim_result claim_in_gap(range wanted) noexcept;
    void limit_gaps() noexcept;

    range allowed_;
    bool has_used_unsolicited_ = false;
    std::uint64_t next_;         // above all claimed ids
    std::uint64_t dropped_ = 0;  // gaps below it may have been dropped
    std::vector<range> gaps_;
};

}  // namespace sluice::smb::auth

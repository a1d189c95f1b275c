#include "sluice/smb/auth/cipher/used_message_ids.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth {

used_message_ids::claim_result used_message_ids::claim(std::uint64_t first, std::uint64_t count) noexcept {
    ENSURE(count != 0);
    if (first == unsolicited_id and count == 1 and allowed_.end == unsolicited_id)
        return std::exchange(has_used_unsolicited_, true) ? claim_result::used : claim_result::fresh;
    if (first < allowed_.first or first >= allowed_.end or count > allowed_.end - first)
        return claim_result::unknown;
    if (first < next_) return claim_in_gap({.first = first, .end = first + count});
    if (first != next_) {
        gaps_.push_back({.first = next_, .end = first});
        limit_gaps();
    }
    next_ = first + count;
    return claim_result::fresh;
}

used_message_ids::claim_result used_message_ids::claim_in_gap(range wanted) noexcept {
    const auto after = std::ranges::upper_bound(gaps_, wanted.first, {}, &range::first);
    const bool is_in_gap = after != gaps_.begin() and wanted.end <= std::prev(after)->end;
    if (not is_in_gap) return wanted.first < dropped_ ? claim_result::unknown : claim_result::used;
    const auto gap = std::prev(after);
    const range above{.first = wanted.end, .end = gap->end};
    gap->end = wanted.first;
    const bool has_below = gap->first != gap->end;
    const bool has_above = above.first != above.end;
    if (has_below and has_above) {
        gaps_.insert(after, above);
        limit_gaps();
    } else if (has_above) {
        *gap = above;
    } else if (not has_below) {
        gaps_.erase(gap);
    }
    return claim_result::fresh;
}

void used_message_ids::limit_gaps() noexcept {
    if (gaps_.size() <= limits::unsigned_gaps_max) return;
    dropped_ = gaps_.front().end;
    gaps_.erase(gaps_.begin());
}

}  // namespace sluice::smb::auth

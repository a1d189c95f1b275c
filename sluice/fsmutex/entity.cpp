#include "sluice/fsmutex/entity.hpp"

#include <algorithm>
#include <new>

#include "sluice/fsmutex/queue/sip_hash.hpp"

namespace sluice::fsmutex {
namespace {

// By number, exclusive first, so that the first of equal numbers is the one to keep.
constexpr bool comes_before(entity a, entity b) noexcept {
    return a.number() != b.number() ? a.number() < b.number() : a.is_exclusive() and not b.is_exclusive();
}

}  // namespace

entity entity::of_bytes(bytes_view name, lock_mode mode) noexcept {
    return entity(sip_hash_64(name), mode);
}

result<entity_set> entity_set::of(std::span<const entity> wanted) noexcept {
    if (wanted.empty()) return failure({EINVAL, "lock an empty set of entities"});
    entity_set made;
    entity* sorted = made.inline_.data();
    if (wanted.size() > made.inline_.size()) {
        made.heap_.reset(new (std::nothrow) entity[wanted.size()]);
        if (made.heap_ == nullptr) return failure({ENOMEM, "lock entities"});
        sorted = made.heap_.get();
    }
    entity* end = std::copy(wanted.begin(), wanted.end(), sorted);
    if (wanted.size() != 1) {
        std::sort(sorted, end, comes_before);
        end = std::unique(sorted, end, [](entity a, entity b) { return a.number() == b.number(); });
    }
    made.size_ = static_cast<std::size_t>(end - sorted);
    return made;
}

bool is_in_order(std::span<const entity> wanted) noexcept {
    return not wanted.empty() and std::adjacent_find(wanted.begin(), wanted.end(), [](entity a, entity b) {
                                      return a.number() >= b.number();
                                  }) == wanted.end();
}

bool conflict(std::span<const entity> a, std::span<const entity> b) noexcept {
    auto left = a.begin();
    auto right = b.begin();
    while (left != a.end() and right != b.end()) {
        if (left->conflicts_with(*right)) return true;
        // Both advance if the numbers are equal.
        const bool left_goes = left->number() <= right->number();
        const bool right_goes = right->number() <= left->number();
        left += left_goes;
        right += right_goes;
    }
    return false;
}

}  // namespace sluice::fsmutex

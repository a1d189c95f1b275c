#include "sluice/fat/engine/free_map.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

// In 64 bits, because on a damaged volume many files can have the same clusters.
std::uint64_t clusters_in(std::span<const cluster_extent> extents) noexcept {
    return std::accumulate(extents.begin(), extents.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const cluster_extent& each) { return sum + each.length; });
}

free_map::free_map(std::uint32_t first, std::uint32_t count)
    : first_(first), count_(count), words_(count / word_bits + 1), free_in_(count / window_bits + 1) {
    ENSURE(count <= UINT32_MAX - first, "the end of the range fits into 32 bits");
}

bool free_map::is_free(std::uint32_t which) const noexcept {
    if (which < first_ or which - first_ >= count_) return false;
    const std::uint32_t index = which - first_;
    return (words_[index / word_bits] >> (index % word_bits) & 1) != 0;
}

// Calls per_word(word, mask, window) for the bits of each word.
template <class PerWord>
void free_map::for_each_word(cluster_extent what, PerWord per_word) noexcept {
    ENSURE(what.first >= first_ and what.first - first_ <= count_ and
           what.length <= count_ - (what.first - first_));
    std::uint32_t index = what.first - first_;
    for (std::uint32_t left = what.length; left != 0;) {
        const std::uint32_t bit = index % word_bits;
        const std::uint32_t bits = std::min(left, word_bits - bit);
        const std::uint64_t ones = bits == word_bits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        per_word(words_[index / word_bits], ones << bit, free_in_[index / window_bits], bits);
        index += bits;
        left -= bits;
    }
}

void free_map::take(cluster_extent what) noexcept {
    ENSURE(what.length <= free_, "taken bits were free");
    for_each_word(what,
                  [](std::uint64_t& word, std::uint64_t mask, std::uint32_t& free_in, std::uint32_t bits) {
                      ENSURE((word & mask) == mask, "taken bits were free");
                      ENSURE(free_in >= bits, "the free bits of a window are counted");
                      word &= ~mask;
                      free_in -= bits;
                  });
    free_ -= what.length;
}

void free_map::give(cluster_extent what) noexcept {
    ENSURE(what.length <= count_ - free_, "released bits were taken");
    for_each_word(what,
                  [](std::uint64_t& word, std::uint64_t mask, std::uint32_t& free_in, std::uint32_t bits) {
                      ENSURE((word & mask) == 0, "released bits were taken");
                      ENSURE(free_in <= window_bits - bits, "the free bits of a window are counted");
                      word |= mask;
                      free_in += bits;
                  });
    free_ += what.length;
}

void free_map::free_if_allocated(cluster_extent what) noexcept {
    for_each_word(what, [&](std::uint64_t& word, std::uint64_t mask, std::uint32_t& free_in, std::uint32_t) {
        const auto fresh = static_cast<std::uint32_t>(std::popcount(mask & ~word));
        word |= mask;
        free_in += fresh;
        free_ += fresh;
    });
    ENSURE(free_ <= count_, "each bit is counted once");
}

std::uint32_t free_map::free_bits_from(std::uint32_t index, std::uint32_t most) const noexcept {
    std::uint32_t found = 0;
    while (found < most and index < count_) {
        const std::uint32_t bit = index % word_bits;
        const auto ones = static_cast<std::uint32_t>(std::countr_one(words_[index / word_bits] >> bit));
        const std::uint32_t here = std::min(ones, word_bits - bit);
        found += here;
        index += here;
        if (here < word_bits - bit) break;
    }
    return std::min(found, most);
}

std::uint32_t free_map::free_from(std::uint32_t first, std::uint32_t most) const noexcept {
    if (first < first_ or first - first_ >= count_) return 0;
    return free_bits_from(first - first_, most);
}

// Returns the first free bit at or after index; count_ if there is none.
std::uint32_t free_map::next_free(std::uint32_t index) const noexcept {
    while (index < count_) {
        if (free_in_[index / window_bits] == 0) {
            index = (index / window_bits + 1) * window_bits;
            continue;
        }
        const std::uint64_t word = words_[index / word_bits] >> (index % word_bits);
        if (word != 0) return index + static_cast<std::uint32_t>(std::countr_zero(word));
        index = (index / word_bits + 1) * word_bits;
    }
    return count_;
}

bool free_map::find_between(std::uint32_t from, std::uint32_t to, std::uint32_t wanted,
                            cluster_extent& best) const noexcept {
    ENSURE(from <= to and to <= count_);
    for (std::uint32_t index = next_free(from); index < to;) {
        const std::uint32_t length = free_bits_from(index, wanted);
        if (length > best.length) best = {.first = first_ + index, .length = length};
        if (length == wanted) return true;
        index = next_free(index + length);
    }
    return false;
}

std::optional<cluster_extent> free_map::find_run(std::uint32_t goal, std::uint32_t wanted) const noexcept {
    ENSURE(wanted != 0);
    if (free_ == 0) return std::nullopt;
    const std::uint32_t start = goal < first_ or goal - first_ >= count_ ? 0 : goal - first_;
    cluster_extent best;
    if (not find_between(start, count_, wanted, best)) (void)find_between(0, start, wanted, best);
    ENSURE(best.length != 0 and best.length <= free_, "the free ones are counted");
    return best;
}

}  // namespace sluice::fat

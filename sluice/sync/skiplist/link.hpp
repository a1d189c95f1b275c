#pragma once

#include <cstdint>

// One word that links a node of the skip list to the next one.

namespace sluice::sync::skiplist {

/// The number of a node in its pool: four bytes, so that a link has space for more than its target.
using node_number = std::uint32_t;
constexpr node_number no_node = 0;
constexpr node_number the_end = 0;  // the same: never used by a range; the end of every level
constexpr unsigned node_number_bits = 24;

/// The 64 bits of a link: whether its own node is being removed (the mark), the next node, and how
/// often this link has changed (the tag).
///
/// The tag never restarts, not even when the node is used for another range. So a link that reads
/// as it did before has not changed in between, and conclusions from it still hold: no node was
/// added or removed after it, its node was not freed, and the next one was not either. (Michael,
/// "High performance dynamic lock-free hash tables and list-based sets", SPAA 2002.) A false match
/// takes 2^39 changes of one link, which is hours, while one thread is stopped between two
/// instructions.
struct tagged_link {
    static constexpr std::uint64_t mark = 1;

    [[nodiscard]] static constexpr bool is_marked(std::uint64_t word) noexcept { return (word & mark) != 0; }
    [[nodiscard]] static constexpr node_number next(std::uint64_t word) noexcept {
        return static_cast<node_number>(word >> tag_bits);
    }
    /// Returns `before` changed to point to `next`; without a mark.
    [[nodiscard]] static constexpr std::uint64_t changed(std::uint64_t before, node_number next) noexcept {
        return ((before + tag_one) & tag) | std::uint64_t{next} << tag_bits;
    }
    /// Returns whether a link with the value `before` has changed fewer than 2^30 times since.
    [[nodiscard]] static constexpr bool is_soon_after(std::uint64_t before, std::uint64_t now) noexcept {
        return ((now - before) & tag) < std::uint64_t{1} << 31;
    }

private:
    static constexpr unsigned tag_bits = 64 - node_number_bits;  // including the mark
    static constexpr std::uint64_t tag_one = 2;
    static constexpr std::uint64_t tag = (std::uint64_t{1} << tag_bits) - tag_one;
};

/// The error-prone steps of the list. Tests replace them by wrong ones, to check that the errors
/// are found.
struct sound_steps : tagged_link {
    /// Whether a node's link above the bottom is set again before another attempt to link the node
    /// on that level: otherwise it unlinks nodes that were added in between.
    static constexpr bool renews_upper_links = true;
    /// Whether an entry point is trusted only if its node's state word confirms it.
    static constexpr bool listens_to_posts = true;

    // Each node notes a request, and creates a missing entry point, once per this number of uses.
    static constexpr std::uint32_t uses_per_note = 256;
    static constexpr std::uint32_t uses_per_post = 16;
    static constexpr unsigned requests_recorded = 16;  // until regions are reconsidered
};

}  // namespace sluice::sync::skiplist

#pragma once

#include <cstdint>

// One word that leads from a node of the skip list to the next one.

namespace sluice::sync::skiplist {

/// The number of a node in its pool: four bytes, so that a link has room for more than where it leads.
using node_number = std::uint32_t;
constexpr node_number no_node = 0;
constexpr node_number the_end = 0;  // the same: it is never taken, and where every level ends
constexpr unsigned node_number_bits = 24;

/// What a link says, in 64 bits: whether its own node is on its way out (the mark), which node comes next,
/// and how often this link has changed (the tag).
///
/// The tag never starts again, not even when the node is used for another range. So a link that reads as it
/// did before has not changed in between, and what was concluded from it still holds: nobody came or went
/// behind it, its node was not given back, and the next one was not either. (Michael, "High performance
/// dynamic lock-free hash tables and list-based sets", SPAA 2002.) It takes 2^39 changes of one link, hours
/// of them, while one thread stands still between two instructions, to deceive.
struct tagged_link {
    static constexpr std::uint64_t mark = 1;

    [[nodiscard]] static constexpr bool is_marked(std::uint64_t word) noexcept { return (word & mark) != 0; }
    [[nodiscard]] static constexpr node_number next(std::uint64_t word) noexcept {
        return static_cast<node_number>(word >> tag_bits);
    }
    /// `before` changed to lead to `next`; without a mark.
    [[nodiscard]] static constexpr std::uint64_t changed(std::uint64_t before, node_number next) noexcept {
        return ((before + tag_one) & tag) | std::uint64_t{next} << tag_bits;
    }
    /// Whether a link that said `before` has changed less than 2^30 times since.
    [[nodiscard]] static constexpr bool is_soon_after(std::uint64_t before, std::uint64_t now) noexcept {
        return ((now - before) & tag) < std::uint64_t{1} << 31;
    }

private:
    static constexpr unsigned tag_bits = 64 - node_number_bits;  // the mark's among them
    static constexpr std::uint64_t tag_one = 2;
    static constexpr std::uint64_t tag = (std::uint64_t{1} << tag_bits) - tag_one;
};

/// How the list takes the steps that are easily taken wrongly. Tests put wrong ones in their place, to see
/// that they would be found.
struct sound_steps : tagged_link {
    /// Whether a node's link above the bottom is set anew before another attempt to lead to the node on that
    /// level: otherwise it cuts off those that came in between.
    static constexpr bool renews_upper_links = true;
    /// Whether a post is believed to be one only if its node's bell says so.
    static constexpr bool listens_to_posts = true;

    // Each node leaves a note of a request, and sets up a post that is missing, one use in so many.
    static constexpr std::uint32_t uses_per_note = 256;
    static constexpr std::uint32_t uses_per_post = 16;
    static constexpr unsigned requests_noted = 16;  // until regions are thought over
};

}  // namespace sluice::sync::skiplist

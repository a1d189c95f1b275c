#pragma once

#include <limits>

#include "sluice/io/loop/io_multiplexer.hpp"

// Internal to io: common definitions of the parts of io_multiplexer that repeat passes.

namespace sluice::io::passes {

inline constexpr io_multiplexer::time_point no_wait = io_multiplexer::time_point::min();
inline constexpr io_multiplexer::time_point forever = io_multiplexer::time_point::max();

[[nodiscard]] inline io_multiplexer::time_point after(io_multiplexer::time_point now,
                                                      io_multiplexer::duration within) noexcept {
    return within >= forever - now ? forever : now + within;
}

// A negative maximum means all.
[[nodiscard]] inline int maximum(int asked) noexcept {
    return asked < 0 ? std::numeric_limits<int>::max() : asked;
}

// Repeats a pass that handles up to a number of items, until `max` are done, a pass finds none or
// the time is up.
template <class Pass, class Clock>
[[nodiscard]] result<int> repeat(int max, io_multiplexer::time_point until, Clock&& now,
                                 Pass&& pass) noexcept {
    max = maximum(max);
    int total = 0;
    do {
        const result<int> count = pass(max - total);
        if (not count or *count <= 0) return total > 0 ? total : count;
        total += *count;
    } while (total < max and (until == forever or now() < until));
    return total;
}

}  // namespace sluice::io::passes

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/status/json_value.hpp"

namespace sluice::cli {

struct screen_size {
    std::size_t rows = 24;
    std::size_t columns = 80;
};

/// Returns the lines of `sluice status --watch` for two documents of one server, the second later
/// than the first: rates between both, delays of the event loops, sessions, shares, the clients
/// with most traffic, open files if the documents have them, and rejections with their effect.
///
/// The lines fit the screen: long lists end with the number of the entries that are left out, in
/// favour of short ones, and long lines are cut. Texts of clients are shown as terminal_text().
/// Pure function; members that are missing count as empty. Allocates: the lines. Complexity:
/// O(n log n) in the sessions.
[[nodiscard]] std::vector<std::string> watch_screen(const json_value& before, const json_value& now,
                                                    const screen_size& size);

/// Returns the beginning of a line that is not wider than a screen; every character counts as one
/// column.
[[nodiscard]] std::string fitting_line(std::string_view line, std::size_t columns);

}  // namespace sluice::cli

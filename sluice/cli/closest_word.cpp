#include "sluice/cli/closest_word.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::size_t letters_max = 64;  // a longer word is not a mistyped option

// The number of changes from one word to another: the optimal string alignment distance.
std::size_t distance(std::string_view from, std::string_view to) {
    // The last three rows of the table: row i has the distances of the first i letters of `from`.
    std::vector<std::size_t> before_last;
    std::vector<std::size_t> last(to.size() + 1);
    std::vector<std::size_t> row(to.size() + 1);
    for (std::size_t column = 0; column <= to.size(); ++column)
        last[column] = column;
    for (std::size_t i = 1; i <= from.size(); ++i) {
        row[0] = i;
        for (std::size_t k = 1; k <= to.size(); ++k) {
            const std::size_t replaced = last[k - 1] + (from[i - 1] == to[k - 1] ? 0 : 1);
            row[k] = std::min({last[k] + 1, row[k - 1] + 1, replaced});
            const bool is_swap = i > 1 and k > 1 and from[i - 1] == to[k - 2] and from[i - 2] == to[k - 1];
            if (is_swap) row[k] = std::min(row[k], before_last[k - 2] + 1);
        }
        before_last = std::exchange(last, row);
    }
    return last[to.size()];
}

std::string_view without_dashes(std::string_view word) noexcept {
    const std::size_t first = word.find_first_not_of('-');
    return first == std::string_view::npos ? std::string_view() : word.substr(first);
}

}  // namespace

std::optional<std::string> closest_word(std::string_view word, const std::vector<std::string>& known) {
    const std::string_view typed = without_dashes(word);
    if (typed.size() < 3 or typed.size() > letters_max) return std::nullopt;
    std::optional<std::string> best;
    std::size_t fewest = typed.size() / 3 + 1;
    for (const std::string& each : known) {
        const std::size_t changes = distance(typed, without_dashes(each));
        if (changes >= fewest) continue;
        fewest = changes;
        best = each;
    }
    return best;
}

std::string suggestion_for(std::string_view word, const std::vector<std::string>& known) {
    const auto closest = closest_word(word, known);
    return closest ? fmt::format("; did you mean '{}'?", *closest) : std::string();
}

}  // namespace sluice::cli

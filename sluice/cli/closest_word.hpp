#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// Returns the word of a list that a user who has typed `word` most likely meant: the one with the
/// fewest changes, which are a letter that is inserted, left out or replaced, or two neighbours
/// that are swapped. std::nullopt if more than a third of the letters would have to change, or the
/// word has less than three. Leading dashes do not count as letters. Allocates: yes. Complexity:
/// the product of the lengths, for each word of the list. Thread safety: any thread.
[[nodiscard]] std::optional<std::string> closest_word(std::string_view word,
                                                      const std::vector<std::string>& known);

/// Returns "; did you mean 'WORD'?" for the closest word, as the end of a message; empty if there
/// is none.
[[nodiscard]] std::string suggestion_for(std::string_view word, const std::vector<std::string>& known);

}  // namespace sluice::cli

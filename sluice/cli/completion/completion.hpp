#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/help_text.hpp"

namespace sluice::cli {

/// A word that can continue a command line. Thread safety: none, as of all declarations here.
struct completion_candidate {
    std::string word{};
    std::string what{};  ///< clause of the help; empty: none
};

/// The words and names that can replace the last word of a command line.
struct completion {
    /// Names that only the shell knows.
    enum class source : std::uint8_t { none, files, directories, commands };

    std::vector<completion_candidate> candidates{};
    source also = source::none;
    std::string before_path{};  ///< beginning of the word that is not part of the path: "--config="
};

/// Returns the completions of the last of `words`, the arguments of `program` up to the cursor. The
/// last word may be empty. Allocates: the result. Complexity: linear in the words and the options.
[[nodiscard]] completion complete(const help_page& program, std::span<const std::string> words);

/// Returns `found` in the form that the scripts read: a line "WORD<TAB>DESCRIPTION" per candidate,
/// then ":none", ":files PREFIX", ":directories PREFIX" or ":commands". Allocates: the text.
[[nodiscard]] std::string completion_text(const completion& found);

/// Returns the names of the shells that completion_script() knows. Allocates: the list.
[[nodiscard]] std::vector<std::string> completion_shells();

/// Returns the script that makes `shell`, one of completion_shells(), ask the program for
/// completions.
[[nodiscard]] std::string_view completion_script(std::string_view shell) noexcept;

}  // namespace sluice::cli

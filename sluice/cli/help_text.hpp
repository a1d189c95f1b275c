#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

/// An option or operand in a help text. Loop-owned: the main thread's, as the rest of this header.
struct help_option {
    std::string names{};                 ///< "-r, --recursive", or the name of an operand
    std::string value{};                 ///< placeholder of its value, such as FILE; empty: a flag
    std::string what{};                  ///< clause in lower case without a full stop
    std::string range{};                 ///< "0-64"; empty if any value is accepted
    std::string present_default{};       ///< shown as [default: …]; empty: not shown
    std::vector<std::string> choices{};  ///< the accepted values; empty: not a list
    std::string group = "Options";       ///< heading
    bool is_operand = false;
    bool is_required = false;
    bool is_repeatable = false;  ///< an operand that takes several words
};

/// The help text of one command, which lists its options, operands and subcommands.
struct help_page {
    std::string command{};           ///< "sluice fat get"
    std::string what{};              ///< clause in lower case without a full stop
    std::string group = "Commands";  ///< heading in the page of the command above
    std::string operands{};          ///< in the usage line; empty: composed of the operands
    std::string further_status{};    ///< "4 volume damaged": continues the last line
    std::vector<std::string> examples{};
    std::deque<help_option> options{};    // addresses remain valid
    std::deque<help_page> subcommands{};  // the same

    /// Returns the line "Usage: …", without a line feed. Allocates: the text,
    /// as all functions here.
    [[nodiscard]] std::string usage() const;
    /// Returns the words that may follow the command: its options, also the short ones, and its
    /// subcommands. Allocates: the list.
    [[nodiscard]] std::vector<std::string> known_words() const;
    /// Returns the whole text. `ending`, a sentence, is the last line, without `further_status`.
    [[nodiscard]] std::string text(std::string_view ending) const;
};

/// Appends "  NAMES   DESCRIPTION" and a line feed, wrapped like the rows of a page.
void append_help_row(std::string& to, std::string_view names, std::string_view description);

/// Returns "-r, --recursive" for "-r,--recursive".
[[nodiscard]] std::string shown_option_names(std::string_view declared);

}  // namespace sluice::cli

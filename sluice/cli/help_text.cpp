#include "sluice/cli/help_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace sluice::cli {
namespace {

constexpr std::size_t width = 84;
// Where descriptions begin.
constexpr std::size_t option_column = 28;
constexpr std::size_t command_column = 15;

// Appends words, and begins a new line at `column` before one that does not fit.
void append_wrapped(std::string& to, std::string_view words, std::size_t column) {
    std::size_t at = column;
    for (bool is_first = true; not words.empty(); is_first = false) {
        const std::string_view word = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(words.size(), word.size() + 1));
        if (not is_first and at + 1 + word.size() > width) {
            to += '\n' + std::string(column, ' ');
            at = column;
        } else if (not is_first) {
            to += ' ';
            ++at;
        }
        to += word;
        at += word.size();
    }
    to += '\n';
}

void append_row(std::string& to, std::string_view names, std::string_view description, std::size_t column) {
    const std::string start = fmt::format("  {}", names);
    to += start;
    const bool has_room = start.size() + 2 <= column;
    to += has_room ? std::string(column - start.size(), ' ') : '\n' + std::string(column, ' ');
    append_wrapped(to, description, column);
}

[[nodiscard]] std::string description_of(const help_option& one) {
    std::string before(one.what);
    std::string after;
    // A default that the text states itself remains at the end.
    if (const auto at = one.what.find(" [default"); at != std::string::npos) {
        before = one.what.substr(0, at);
        after = one.what.substr(at);
    }
    if (not one.range.empty()) before += fmt::format(" [{}]", one.range);
    if (not one.present_default.empty()) after += fmt::format(" [default: {}]", one.present_default);
    return before + after;
}

[[nodiscard]] std::string left_of(const help_option& one) {
    return one.value.empty() or one.is_operand ? one.names : one.names + ' ' + one.value;
}

// The headings of `all` in the order of their first element.
template <class List>
[[nodiscard]] std::vector<std::string> groups_of(const List& all) {
    std::vector<std::string> groups;
    for (const auto& one : all)
        if (std::ranges::find(groups, one.group) == groups.end()) groups.push_back(one.group);
    return groups;
}

[[nodiscard]] std::string sentence_of(std::string_view clause) {
    std::string text(clause);
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    if (not text.ends_with('.')) text += '.';
    return text;
}

void append_operands(std::string& to, const help_page& page) {
    bool is_first = true;
    for (const help_option& one : page.options) {
        if (not one.is_operand) continue;
        if (std::exchange(is_first, false)) to += "\nArguments:\n";
        append_help_row(to, one.names, description_of(one));
    }
}

void append_subcommands(std::string& to, const help_page& page) {
    for (const std::string& group : groups_of(page.subcommands)) {
        to += fmt::format("\n{}:\n", group);
        for (const help_page& each : page.subcommands)
            if (each.group == group)
                append_row(to, each.command.substr(page.command.size() + 1), each.what, command_column);
    }
}

void append_options(std::string& to, const help_page& page) {
    std::vector<const help_option*> named;
    for (const help_option& one : page.options)
        if (not one.is_operand) named.push_back(&one);
    std::vector<std::string> groups{"Options"};
    for (const help_option* one : named)
        if (std::ranges::find(groups, one->group) == groups.end()) groups.push_back(one->group);
    const auto is_of = [](const std::string& group) {
        return [&group](const help_option* one) { return one->group == group; };
    };
    std::erase_if(groups, [&](const std::string& group) {
        return groups.size() > 1 and std::ranges::none_of(named, is_of(group));
    });
    for (const std::string& group : groups) {
        to += fmt::format("\n{}:\n", group);
        for (const help_option* one : named)
            if (one->group == group) append_help_row(to, left_of(*one), description_of(*one));
        if (group == groups.back()) append_help_row(to, "-h, --help", "print this help and exit");
    }
}

}  // namespace

void append_help_row(std::string& to, std::string_view names, std::string_view description) {
    append_row(to, names, description, option_column);
}

std::vector<std::string> help_page::known_words() const {
    std::vector<std::string> words{"--help"};
    for (const help_option& each : options) {
        if (each.is_operand) continue;
        for (std::size_t from = 0; from < each.names.size();) {
            const std::size_t end = std::min(each.names.find(", ", from), each.names.size());
            words.push_back(each.names.substr(from, end - from));
            from = end + 2;
        }
    }
    for (const help_page& each : subcommands)
        words.push_back(each.command.substr(command.size() + 1));
    return words;
}

std::string help_page::usage() const {
    std::string line = fmt::format("Usage: {}", command);
    if (not subcommands.empty()) return line + " COMMAND [OPTIONS]";
    line += " [OPTIONS]";
    if (not operands.empty()) return line + ' ' + operands;
    for (const help_option& one : options) {
        if (not one.is_operand) continue;
        const std::string name =
            one.is_repeatable and one.names.find(' ') == std::string::npos ? one.names + "..." : one.names;
        line += one.is_required ? ' ' + name : fmt::format(" [{}]", name);
    }
    return line;
}

std::string help_page::text(std::string_view ending) const {
    std::string to = fmt::format("{}\n\n{}\n", usage(), sentence_of(what));
    append_operands(to, *this);
    append_subcommands(to, *this);
    append_options(to, *this);
    if (not subcommands.empty())
        to += fmt::format("\nRun '{} COMMAND --help' for the options of a command.\n", command);
    if (not examples.empty()) to += "\nExamples:\n";
    for (const std::string& example : examples)
        to += fmt::format("  {}\n", example);
    if (not further_status.empty()) {
        ending.remove_suffix(ending.ends_with('.') ? 1 : 0);
        return to += fmt::format("\n{}, {}.\n", ending, further_status);
    }
    return to += fmt::format("\n{}\n", ending);
}

std::string shown_option_names(std::string_view declared) {
    std::string names(declared);
    if (const auto comma = names.find(','); comma != std::string::npos) names.insert(comma + 1, 1, ' ');
    return names;
}

}  // namespace sluice::cli

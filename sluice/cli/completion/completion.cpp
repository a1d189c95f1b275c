#include "sluice/cli/completion/completion.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace sluice::cli {
namespace {

using source = completion::source;

// A placeholder of the help, such as FILE, and where its values come from.
struct placeholder {
    std::string_view name;
    source values;
};
constexpr std::array placeholders{
    placeholder{"ARGUMENT", source::files},    placeholder{"COMMAND", source::commands},
    placeholder{"DIR", source::directories},   placeholder{"DIRECTORY", source::directories},
    placeholder{"FILE", source::files},        placeholder{"IMAGE", source::files},
    placeholder{"IMAGE:/PATH", source::files}, placeholder{"LOCKFILE", source::files},
    placeholder{"PATH", source::files},        placeholder{"SOURCE", source::files},
    placeholder{"TARGET", source::files},
};
constexpr std::string_view url_placeholder = "URL";
constexpr std::string_view url_start = "smb://";

source source_of(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(placeholders, name, &placeholder::name);
    return found == placeholders.end() ? source::none : found->values;
}

// An operand in the usage line.
struct operand {
    std::string name;
    bool is_repeatable = false;
    bool may_have_name = false;  // [NAME=]PATH
};

operand operand_of(std::string_view word) {
    operand one;
    if (const auto at = word.find("=]"); at != std::string_view::npos) {
        one.may_have_name = true;
        word.remove_prefix(at + 2);
    }
    std::string_view name = word.substr(0, word.find("..."));
    one.is_repeatable = name.size() < word.size();
    if (name.starts_with('[')) name.remove_prefix(1);
    one.name = name.substr(0, name.find(']'));
    return one;
}

std::vector<operand> operands_of(const help_page& page) {
    std::vector<operand> all;
    if (not page.subcommands.empty()) return all;
    const std::string line = page.usage();
    constexpr std::string_view before = "[OPTIONS]";
    std::size_t from = line.find(before) + before.size();
    while (from < line.size()) {
        const std::size_t end = std::min(line.find(' ', from + 1), line.size());
        const std::string_view word = std::string_view(line).substr(from + 1, end - from - 1);
        if (word != "[--]") all.push_back(operand_of(word));
        from = end;
    }
    return all;
}

// Returns the operands that the word after `count` operands can be. After one that is repeated,
// the same word can be that or the next operand.
std::vector<operand> operands_at(const help_page& page, std::size_t count) {
    std::vector<operand> found;
    std::size_t at = 0;
    bool is_after_repeated = false;
    for (const operand& each : operands_of(page)) {
        const bool fits = at == count or (at < count and (each.is_repeatable or is_after_repeated));
        if (fits) found.push_back(each);
        is_after_repeated = is_after_repeated or each.is_repeatable;
        ++at;
    }
    return found;
}

std::string name_in(const help_page& page) {
    return page.command.substr(page.command.rfind(' ') + 1);
}

// The state after the words before the last one.
struct position {
    std::vector<const help_page*> pages;  // the program, the command, its subcommand
    const help_option* valued = nullptr;  // the option whose value is next
    std::size_t operands = 0;
    bool options_ended = false;
    bool is_in_command = false;  // after the word that COMMAND stands for

    [[nodiscard]] const help_page& page() const noexcept { return *pages.back(); }
};

std::vector<std::string_view> names_of(const help_option& option) {
    std::vector<std::string_view> names;
    std::string_view rest = option.names;
    while (not rest.empty()) {
        const std::size_t end = std::min(rest.find(", "), rest.size());
        names.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    return names;
}

// Returns the option with this name, of the command or of one above it, or nullptr.
const help_option* option_named(const position& at, std::string_view name) {
    for (const help_page* page : at.pages)
        for (const help_option& each : page->options)
            if (const auto names = names_of(each);
                not each.is_operand and std::ranges::find(names, name) != names.end())
                return &each;
    return nullptr;
}

bool is_option(std::string_view word) noexcept {
    return word.size() > 1 and word.starts_with('-');
}

void pass_option(position& at, std::string_view word) {
    if (word.contains('=')) return;
    const bool is_short = not word.starts_with("--");
    const help_option* found = nullptr;
    if (is_short) {
        // In "-rx", each letter is an option, up to one that takes the rest as its value.
        for (std::size_t i = 1; i < word.size(); ++i) {
            found = option_named(at, std::string{'-', word[i]});
            if (found != nullptr and not found->value.empty()) {
                if (i + 1 < word.size()) found = nullptr;
                break;
            }
        }
    } else {
        found = option_named(at, word);
    }
    if (found != nullptr and not found->value.empty()) at.valued = found;
}

void pass_operand(position& at, std::string_view word) {
    for (const help_page& each : at.page().subcommands)
        if (name_in(each) == word) return at.pages.push_back(&each);
    for (const operand& each : operands_at(at.page(), at.operands))
        if (source_of(each.name) == source::commands) at.is_in_command = true;
    ++at.operands;
}

void pass(position& at, std::string_view word) {
    if (at.is_in_command) return;
    if (at.valued != nullptr)
        at.valued = nullptr;
    else if (not at.options_ended and word == "--")
        at.options_ended = true;
    else if (not at.options_ended and is_option(word))
        pass_option(at, word);
    else
        pass_operand(at, word);
}

void add(completion& to, std::string_view begun, std::string word, std::string_view what) {
    if (word.starts_with(begun)) to.candidates.push_back({std::move(word), std::string(what)});
}

void add_options(completion& to, const position& at, std::string_view begun) {
    for (const help_page* page : at.pages) {
        // The options of the program itself do not apply to its commands.
        if (page == at.pages.front() and at.pages.size() > 1) continue;
        for (const help_option& each : page->options)
            if (not each.is_operand)
                for (const std::string_view name : names_of(each))
                    add(to, begun, std::string(name), each.what);
    }
    const bool has_help = std::ranges::any_of(
        to.candidates, [](const completion_candidate& each) { return each.word == "--help"; });
    if (not has_help) {
        add(to, begun, "-h", "print this help and exit");
        add(to, begun, "--help", "print this help and exit");
    }
}

// The choices of an option or operand: those of its check, or those in a placeholder "off|on".
std::vector<std::string> choices_of(const help_option& option) {
    if (not option.choices.empty() or not option.value.contains('|')) return option.choices;
    std::vector<std::string> words;
    std::string_view rest = option.value;
    while (not rest.empty()) {
        const std::size_t end = std::min(rest.find('|'), rest.size());
        words.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return words;
}

void add_values(completion& to, const help_option& option, std::string_view before, std::string_view begun) {
    for (const std::string& each : choices_of(option))
        add(to, std::string(before) + std::string(begun), std::string(before) + each, "");
    to.also = source_of(option.value);
    to.before_path = before;
}

void add_operand(completion& to, const position& at, const operand& one, std::string_view begun) {
    for (const help_option& each : at.page().options)
        if (each.is_operand and each.names == one.name) add_values(to, each, "", begun);
    if (one.name == url_placeholder) add(to, begun, std::string(url_start), "URL of a server");
    if (const source values = source_of(one.name); values != source::none) to.also = values;
    if (const auto equals = begun.find('='); one.may_have_name and equals != std::string_view::npos)
        to.before_path = begun.substr(0, equals + 1);
}

void add_operands(completion& to, const position& at, std::string_view begun) {
    if (at.operands == 0)
        for (const help_page& each : at.page().subcommands)
            add(to, begun, name_in(each), each.what);
    const std::vector<operand> possible = operands_at(at.page(), at.operands);
    for (const operand& each : possible)
        add_operand(to, at, each, begun);
    const bool is_url = begun.starts_with(url_start.substr(0, 4));
    if (is_url) to.also = source::none;
    // A URL is only one of the possible values: files are more likely, and a shell that has
    // candidates does not look for them.
    if (to.also != source::none and begun.empty()) to.candidates.clear();
}

// "sluice help fat get": only names of commands follow.
completion complete_help(const help_page& program, std::span<const std::string> words) {
    completion found;
    const help_page* page = &program;
    for (const std::string& word : words.first(words.size() - 1)) {
        const auto next = std::ranges::find(page->subcommands, word, name_in);
        if (next == page->subcommands.end()) return found;
        page = &*next;
    }
    for (const help_page& each : page->subcommands)
        add(found, words.back(), name_in(each), each.what);
    return found;
}

}  // namespace

completion complete(const help_page& program, std::span<const std::string> words) {
    completion found;
    if (words.empty()) return found;
    if (words.size() > 1 and words.front() == "help") return complete_help(program, words.subspan(1));
    position at{.pages = {&program}};
    for (const std::string& word : words.first(words.size() - 1))
        pass(at, word);
    const std::string_view begun = words.back();
    if (at.is_in_command) {
        found.also = source::files;
    } else if (at.valued != nullptr) {
        add_values(found, *at.valued, "", begun);
    } else if (not at.options_ended and begun.starts_with('-')) {
        const std::size_t equals = begun.find('=');
        if (equals == std::string_view::npos) {
            add_options(found, at, begun);
        } else if (const help_option* const option = option_named(at, begun.substr(0, equals))) {
            add_values(found, *option, begun.substr(0, equals + 1), begun.substr(equals + 1));
        }
    } else {
        add_operands(found, at, begun);
    }
    return found;
}

std::string completion_text(const completion& found) {
    std::string text;
    for (const completion_candidate& each : found.candidates)
        text += each.word + '\t' + each.what + '\n';
    switch (found.also) {
        case source::none:
            return text + ":none\n";
        case source::files:
            return text + ":files " + found.before_path + '\n';
        case source::directories:
            return text + ":directories " + found.before_path + '\n';
        case source::commands:
            return text + ":commands\n";
    }
    std::unreachable();
}

}  // namespace sluice::cli

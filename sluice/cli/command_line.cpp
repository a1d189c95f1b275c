// The only source that includes CLI11; command_line.hpp gives the reason.

#include "sluice/cli/command_line.hpp"

#include "sluice/cli/byte_size.hpp"
#include "sluice/cli/closest_word.hpp"
#include "sluice/cli/completion/completion.hpp"
#include "sluice/cli/message.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace sluice::cli {
namespace {

// Operands have the names that the help shows: "SOURCE... URL", "IMAGE:/PATH". CLI11 2.4 refuses
// spaces and colons in a name, which 2.1 allowed. So it gets bytes in their place that never occur
// in UTF-8, and as_shown() restores the characters in its output.
constexpr char space_within = '\xfe';
constexpr char colon_within = '\xff';

std::string name_for_parser(std::string_view name) {
    std::string given(name);
    if (name.starts_with('-')) return given;
    std::ranges::replace(given, ' ', space_within);
    std::ranges::replace(given, ':', colon_within);
    return given;
}

std::string as_shown(std::string text) {
    std::ranges::replace(text, space_within, ' ');
    std::ranges::replace(text, colon_within, ':');
    return text;
}

template <class T>
std::string range_text(T least, T most) {
    return fmt::format("{}-{}", least, most);
}

// The placeholder of a value whose option does not name one.
template <class T>
constexpr const char* value_name_of = "TEXT";
template <class T>
    requires std::is_arithmetic_v<T>
constexpr const char* value_name_of<T> = "N";
template <class T>
constexpr const char* value_name_of<std::optional<T>> = value_name_of<T>;
template <class T>
constexpr const char* value_name_of<std::vector<T>> = value_name_of<T>;

// A check fails with the value and the rule. CLI11 adds the name of the option before them, and
// problem_of() makes a sentence of the three.
constexpr char before_rule = '\x1e';

std::string invalid(const std::string& given, std::string_view rule) {
    return fmt::format("{}{}{}", given, before_rule, rule);
}

template <class T>
auto check_of_range(T least, T most) {
    return [least, most](const std::string& given) {
        T value{};
        const char* const end = given.data() + given.size();
        const auto [at, code] = std::from_chars(given.data(), end, value);
        if (code == std::errc() and at == end and value >= least and value <= most) return std::string();
        return invalid(given, fmt::format("use {} to {}", least, most));
    };
}

// Returns "1, 2, or 3".
std::string choice_of(const std::vector<std::string>& words) {
    if (words.size() < 3) return fmt::format("{}", fmt::join(words, " or "));
    const auto last = words.end() - 1;
    return fmt::format("{}, or {}", fmt::join(words.begin(), last, ", "), *last);
}

template <class T>
auto check_of_list(const std::vector<T>& values) {
    std::vector<std::string> known;
    for (const T& each : values)
        known.push_back(fmt::format("{}", each));
    return [known](const std::string& given) {
        if (std::ranges::find(known, given) != known.end()) return std::string();
        return invalid(given, "use " + choice_of(known));
    };
}

// A command line that its command refuses: refuse_usage().
class invalid_usage : public CLI::ParseError {
public:
    explicit invalid_usage(const std::string& why)
        : CLI::ParseError(why, static_cast<int>(exit_code::usage)) {}
};

// The message of CLI11 about the number of values of `name`.
std::string problem_of_count(const std::string& text, const std::string& name) {
    if (text.ends_with(" missing")) return "missing value for " + name;
    if (text.contains(": At least ")) return "too few arguments for " + name;
    if (text.contains(": At Most ")) return name + ": given more than once; use it once";
    // Here CLI11 omits the dashes of the name.
    if (const auto at = text.find(" was given a disallowed flag override"); at != std::string::npos)
        return fmt::format("{}{}: takes no value", at == 1 ? "-" : "--", text.substr(0, at));
    return text;
}

// The message of CLI11 about the value of an option.
std::string problem_of_value(const std::string& text, const std::string& name) {
    const auto rule = text.rfind(before_rule);
    if (rule != std::string::npos and rule >= name.size() + 2) {
        const std::string given = text.substr(name.size() + 2, rule - name.size() - 2);
        return fmt::format("invalid value '{}' for {}: {}", given, name, text.substr(rule + 1));
    }
    const std::string after = text.substr(std::min(name.size() + 2, text.size()));
    if (const auto equals = after.find(" = "); equals != std::string::npos)
        return fmt::format("invalid value '{}' for {}: use a number", after.substr(equals + 3),
                           after.substr(0, equals));
    return text;
}

// The message about a word that `page` does not know.
std::string unknown(const char* what, const std::string& word, const help_page& page) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown {} '{}'{}", what, word, suggestion_for(name, page.known_words()));
}

// The message of CLI11 in the form of this program: the value, the option, the rule.
// `unexpected`: the words that the parser has not understood; `page`: the page of the command.
std::string problem_of(const CLI::ParseError& refused, const help_page& page,
                       const std::vector<std::string>& unexpected) {
    const bool is_of_commands = not page.subcommands.empty();
    if (dynamic_cast<const invalid_usage*>(&refused) != nullptr) return refused.what();
    const bool is_incomplete = dynamic_cast<const CLI::RequiredError*>(&refused) != nullptr;
    const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&refused) != nullptr;
    if (not unexpected.empty() and (has_extras or (is_incomplete and is_of_commands))) {
        const std::string word = as_shown(unexpected.front());
        if (word.starts_with('-')) return unknown("option", word, page);
        return is_of_commands ? unknown("command", word, page)
                              : fmt::format("unexpected argument '{}'", word);
    }
    if (is_incomplete and is_of_commands) return "missing command";
    const std::string text = as_shown(refused.what());
    const std::string before = text.substr(0, text.find(": "));
    if (const auto at = text.find(" is required"); is_incomplete and at != std::string::npos)
        return (text.starts_with('-') ? "missing option " : "missing argument ") + text.substr(0, at);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&refused) != nullptr)
        return problem_of_count(text, before);
    if (const auto at = text.find(" excludes ");
        dynamic_cast<const CLI::ExcludesError*>(&refused) != nullptr and at != std::string::npos)
        return fmt::format("{} and {} exclude each other", text.substr(0, at), text.substr(at + 10));
    return problem_of_value(text, before);
}

}  // namespace

option_syntax option_syntax::required() const {
    declared_->required();
    help_->is_required = true;
    return *this;
}

option_syntax option_syntax::expected(int count) const {
    declared_->expected(count);
    return *this;
}

option_syntax option_syntax::expected(int least, int most) const {
    declared_->expected(least, most);
    help_->is_repeatable = most != 1;
    return *this;
}

option_syntax option_syntax::one_value_each_time() const {
    declared_->allow_extra_args(false);
    return *this;
}

option_syntax option_syntax::separated_by(char delimiter) const {
    declared_->delimiter(delimiter);
    return *this;
}

option_syntax option_syntax::excludes(option_syntax other) const {
    declared_->excludes(other.declared_);
    return *this;
}

option_syntax option_syntax::value_name(const char* name) const {
    declared_->type_name(name);
    help_->value = name;
    return *this;
}

option_syntax option_syntax::shows_default() const {
    declared_->capture_default_str();
    help_->present_default = declared_->get_default_str();
    // CLI11 writes several values in brackets, which are around the default already.
    std::string& shown = help_->present_default;
    if (shown.size() >= 2 and shown.front() == '[' and shown.back() == ']')
        shown = shown.substr(1, shown.size() - 2);
    return *this;
}

option_syntax option_syntax::group(const char* heading) const {
    help_->group = heading;
    return *this;
}

option_syntax option_syntax::between(int least, int most) const {
    declared_->check(check_of_range(least, most));
    help_->range = range_text(least, most);
    return *this;
}

option_syntax option_syntax::between(unsigned least, unsigned most) const {
    declared_->check(check_of_range(least, most));
    help_->range = range_text(least, most);
    return *this;
}

option_syntax option_syntax::between(std::uint64_t least, std::uint64_t most) const {
    declared_->check(check_of_range(least, most));
    help_->range = range_text(least, most);
    return *this;
}

option_syntax option_syntax::between(double least, double most) const {
    declared_->check(check_of_range(least, most));
    help_->range = range_text(least, most);
    return *this;
}

option_syntax option_syntax::one_of(const std::vector<std::string>& values) const {
    declared_->check(check_of_list(values));
    help_->choices = values;
    return *this;
}

option_syntax option_syntax::one_of(const std::vector<int>& values) const {
    declared_->check(check_of_list(values));
    for (const int each : values)
        help_->choices.push_back(std::to_string(each));
    return *this;
}

option_syntax option_syntax::size_between(std::uint64_t least, std::uint64_t most) const {
    declared_->transform(CLI::Validator(
        [least, most](std::string& given) {
            const auto bytes = parse_size(given);
            if (not bytes) return invalid(given, validate_size(given));
            if (*bytes < least or *bytes > most)
                return invalid(given, fmt::format("use {} to {} bytes", least, most));
            given = std::to_string(*bytes);
            return std::string();
        },
        std::string()));
    return *this;
}

option_syntax option_syntax::check(const std::function<std::string(const std::string&)>& rule_of) const {
    declared_->check([rule_of](const std::string& given) {
        const std::string rule = rule_of(given);
        return rule.empty() ? rule : invalid(given, rule);
    });
    return *this;
}

command_syntax command_syntax::add_subcommand(const std::string& name, const std::string& what) const {
    help_page& page = help_->subcommands.emplace_back();
    page.command = help_->command + ' ' + name;
    page.what = what;
    CLI::App* const added = declared_->add_subcommand(name, what);
    added->fallthrough();  // options of the command above may follow, too
    return command_syntax(*added, *raw_, page);
}

command_syntax command_syntax::add_raw_command(
    const std::string& name, const std::string& what,
    std::function<int(const std::vector<std::string>&)> action) const {
    raw_->emplace(name, std::move(action));
    return add_subcommand(name, what);  // for the help
}

void command_syntax::describe_option(help_option option) const {
    help_->options.push_back(std::move(option));
}

void command_syntax::require_subcommands(int count) const {
    declared_->require_subcommand(count);
}

template <class T>
option_syntax command_syntax::add_option(const char* name, T& into, const char* what) const {
    help_option& shown = help_->options.emplace_back();
    shown.names = shown_option_names(name);
    shown.value = value_name_of<T>;
    shown.what = what;
    shown.is_operand = *name != '-';
    CLI::Option* const declared = declared_->add_option(name_for_parser(name), into, what);
    shown.is_repeatable = shown.is_operand and declared->get_items_expected_max() > 1;
    return option_syntax(*declared, shown);
}

// The types of option values. Each one takes a second to compile, once, here.
template option_syntax command_syntax::add_option(const char*, double&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::uint16_t&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::uint32_t&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::uint64_t&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::string&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::optional<double>&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::optional<std::uint32_t>&,
                                                  const char*) const;
template option_syntax command_syntax::add_option(const char*, std::optional<std::string>&,
                                                  const char*) const;
template option_syntax command_syntax::add_option(const char*, std::vector<int>&, const char*) const;
template option_syntax command_syntax::add_option(const char*, std::vector<std::uint32_t>&,
                                                  const char*) const;
template option_syntax command_syntax::add_option(const char*, std::vector<std::string>&, const char*) const;

option_syntax command_syntax::add_flag(const char* name, bool& into, const char* what) const {
    help_option& shown = help_->options.emplace_back();
    shown.names = shown_option_names(name);
    shown.what = what;
    return option_syntax(*declared_->add_flag(name, into, what)->disable_flag_override(), shown);
}

command_syntax command_syntax::group(const char* heading) const {
    help_->group = heading;
    return *this;
}

command_syntax command_syntax::usage(const char* operands) const {
    help_->operands = operands;
    return *this;
}

command_syntax command_syntax::example(const char* line) const {
    help_->examples.emplace_back(line);
    return *this;
}

command_syntax command_syntax::further_status(const char* what) const {
    help_->further_status = what;
    return *this;
}

void command_syntax::on_call(std::function<void()> action) const {
    declared_->callback([command = help_->command, action = std::move(action)] {
        set_command_of_messages(command);
        action();
    });
}

command_line::command_line(const texts& about)
    : parser_(std::make_unique<CLI::App>(about.description, about.name)), footer_(about.footer) {
    help_.command = about.name;
    help_.what = about.description;
    help_.options.emplace_back(help_option{.names = "--version", .what = "print the version and exit"});
    parser_->set_version_flag("--version", about.version);
    parser_->require_subcommand(0, 1);
}

command_line::~command_line() = default;

command_syntax command_line::syntax() noexcept {
    return command_syntax(*parser_, raw_, help_);
}

std::string command_line::help() const {
    return help_.text(footer_);
}

// The page of the command that the arguments name, as far as they do.
const help_page& command_line::page_of_named() const {
    const help_page* page = &help_;
    const CLI::App* app = parser_.get();
    while (not app->get_subcommands().empty()) {
        app = app->get_subcommands().front();
        const std::string name = page->command + ' ' + app->get_name();
        page = &*std::ranges::find(page->subcommands, name, &help_page::command);
    }
    return *page;
}

// Prints the mistake and where to look.
exit_code command_line::refuse(const help_page& page, const std::string& problem) {
    const std::string help = page.subcommands.empty()
                                 ? page.usage()
                                 : fmt::format("Run '{} --help' for a list of commands.", page.command);
    set_command_of_messages(page.command);
    print_error(problem);
    std::fprintf(stderr, "%s\n", help.c_str());
    return exit_code::usage;
}

// "sluice help fat get" is "sluice fat get --help". The scripts of "sluice completion" run the
// hidden command "sluice complete".
std::optional<exit_code> command_line::run(int argc, char** argv) {
    if (argc < 2) return run_command(argc, argv);
    if (argv[1] == std::string_view("complete")) {
        const std::vector<std::string> words(argv + 2, argv + argc);
        fmt::print("{}", completion_text(complete(help_, words)));
        return exit_code::success;
    }
    if (argv[1] != std::string_view("help")) return run_command(argc, argv);
    const help_page* page = &help_;
    for (int i = 2; i < argc; ++i) {
        const std::string name = page->command + ' ' + argv[i];
        const auto next = std::ranges::find(page->subcommands, name, &help_page::command);
        if (next == page->subcommands.end()) return refuse(*page, unknown("command", argv[i], *page));
        page = &*next;
    }
    std::string option = "--help";
    std::vector<char*> words{argv[0]};
    for (int i = 2; i < argc; ++i)
        words.push_back(argv[i]);
    words.push_back(option.data());
    words.push_back(nullptr);
    return run_command(static_cast<int>(words.size() - 1), words.data());
}

std::optional<exit_code> command_line::run_command(int argc, char** argv) {
    if (argc > 1)
        if (const auto raw = raw_.find(argv[1]); raw != raw_.end()) {
            set_command_of_messages(help_.command + ' ' + raw->first);
            return static_cast<exit_code>(raw->second(std::vector<std::string>(argv + 2, argv + argc)));
        }
    try {
        parser_->parse(argc, argv);
    } catch (const CLI::RuntimeError& left) {
        return static_cast<exit_code>(left.get_exit_code());
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", page_of_named().text(footer_));
        return exit_code::success;
    } catch (const CLI::CallForVersion& version) {
        fmt::print("{}\n", version.what());
        return exit_code::success;
    } catch (const CLI::ParseError& refused) {
        const help_page& page = page_of_named();
        return refuse(page, problem_of(refused, page, parser_->remaining(true)));
    }
    if (parser_->get_subcommands().empty()) return std::nullopt;
    return exit_code::success;
}

void leave(exit_code code) {
    // The one exception of the program: CLI11 offers no other way out of a callback.
    throw CLI::RuntimeError(static_cast<int>(code));
}

void refuse_usage(const std::string& why) {
    throw invalid_usage(why);
}

}  // namespace sluice::cli

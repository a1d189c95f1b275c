// The only source that includes CLI11; command_line.hpp gives the reason.

#include "sluice/cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string_view>

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

}  // namespace

option_syntax option_syntax::required() const {
    declared_->required();
    return *this;
}

option_syntax option_syntax::expected(int count) const {
    declared_->expected(count);
    return *this;
}

option_syntax option_syntax::expected(int least, int most) const {
    declared_->expected(least, most);
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
    return *this;
}

option_syntax option_syntax::shows_default() const {
    declared_->capture_default_str();
    return *this;
}

option_syntax option_syntax::between(int least, int most) const {
    declared_->check(CLI::Range(least, most));
    return *this;
}

option_syntax option_syntax::between(unsigned least, unsigned most) const {
    declared_->check(CLI::Range(least, most));
    return *this;
}

option_syntax option_syntax::between(std::uint64_t least, std::uint64_t most) const {
    declared_->check(CLI::Range(least, most));
    return *this;
}

option_syntax option_syntax::between(double least, double most) const {
    declared_->check(CLI::Range(least, most));
    return *this;
}

option_syntax option_syntax::one_of(const std::vector<std::string>& values) const {
    declared_->check(CLI::IsMember(values));
    return *this;
}

option_syntax option_syntax::one_of(const std::vector<int>& values) const {
    declared_->check(CLI::IsMember(values));
    return *this;
}

option_syntax option_syntax::size_in_bytes() const {
    declared_->transform(CLI::AsSizeValue(false));
    return *this;
}

option_syntax option_syntax::check(std::function<std::string(const std::string&)> complaint) const {
    declared_->check(std::move(complaint));
    return *this;
}

command_syntax command_syntax::add_subcommand(const std::string& name, const std::string& what) const {
    return command_syntax(*declared_->add_subcommand(name, what), *raw_);
}

void command_syntax::add_raw_command(const std::string& name, const std::string& what,
                                     std::function<int(const std::vector<std::string>&)> action) const {
    declared_->add_subcommand(name, what);  // for the help
    raw_->emplace(name, std::move(action));
}

void command_syntax::require_subcommands(int count) const {
    declared_->require_subcommand(count);
}

template <class T>
option_syntax command_syntax::add_option(const char* name, T& into, const char* what) const {
    return option_syntax(*declared_->add_option(name_for_parser(name), into, what));
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
    return option_syntax(*declared_->add_flag(name, into, what));
}

void command_syntax::on_call(std::function<void()> action) const {
    declared_->callback(std::move(action));
}

command_line::command_line(const texts& about)
    : parser_(std::make_unique<CLI::App>(about.description, about.name)) {
    parser_->set_version_flag("--version", about.version);
    parser_->footer(about.footer);
    parser_->require_subcommand(0, 1);
}

command_line::~command_line() = default;

command_syntax command_line::syntax() noexcept {
    return command_syntax(*parser_, raw_);
}

std::vector<std::pair<std::string, std::string>> command_line::commands() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const CLI::App* command : parser_->get_subcommands([](const CLI::App*) { return true; }))
        all.emplace_back(command->get_name(), command->get_description());
    return all;
}

std::optional<exit_code> command_line::run(int argc, char** argv) {
    if (argc > 1)
        if (const auto raw = raw_.find(argv[1]); raw != raw_.end())
            return static_cast<exit_code>(raw->second(std::vector<std::string>(argv + 2, argv + argc)));
    try {
        parser_->parse(argc, argv);
    } catch (const CLI::RuntimeError& left) {
        return static_cast<exit_code>(left.get_exit_code());
    } catch (const CLI::ParseError& refused) {
        // Prints the requested help or version (then the code is zero), or the error.
        std::ostringstream asked_for;
        std::ostringstream wrong;
        const int code = parser_->exit(refused, asked_for, wrong);
        std::cout << as_shown(asked_for.str()) << std::flush;
        std::cerr << as_shown(wrong.str()) << std::flush;
        return code == 0 ? exit_code::success : exit_code::usage;
    }
    if (parser_->get_subcommands().empty()) return std::nullopt;
    return exit_code::success;
}

void leave(exit_code code) {
    // The one exception of the program: CLI11 offers no other way out of a callback.
    throw CLI::RuntimeError(static_cast<int>(code));
}

}  // namespace sluice::cli

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/help_text.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// The declaration of the command line of each command. CLI11 does the work and this interface
// follows it; but CLI11 consists of templates, and a source that includes it takes ten seconds
// longer to compile. So only command_line.cpp includes it, and this header declares the functions
// that the commands use.
//
// Thread safety: none; the main thread declares and parses a command line. All functions allocate,
// and end the program if memory is exhausted or if a declaration contradicts itself.

/// An option, operand or flag of a command. Refers to it, and is valid while the command_line
/// lives; cheap to copy. Settings affect later parsing only. Every function returns the option
/// itself.
class option_syntax {
public:
    option_syntax(CLI::Option& declared, help_option& help) noexcept : declared_(&declared), help_(&help) {}

    /// Makes the option mandatory.
    option_syntax required() const;
    /// Sets the number of values, or its minimum and maximum. -1 as `most`: any number.
    option_syntax expected(int count) const;
    option_syntax expected(int least, int most) const;
    /// Takes one value per occurrence. Without this, an option that collects values takes all words
    /// that follow.
    option_syntax one_value_each_time() const;
    /// Splits one word into several values at this character.
    option_syntax separated_by(char delimiter) const;
    /// Makes this option and the other one mutually exclusive.
    option_syntax excludes(option_syntax other) const;

    /// Sets the name of the value in the help, such as FILE.
    option_syntax value_name(const char* name) const;
    /// Shows the default in the help: the present value of the variable.
    option_syntax shows_default() const;
    /// Sets the heading in the help under which the option is listed; "Options" without this.
    option_syntax group(const char* heading) const;

    /// Sets the accepted range, both ends included; the help shows it. The type determines how the
    /// help describes the number.
    option_syntax between(int least, int most) const;
    option_syntax between(unsigned least, unsigned most) const;
    option_syntax between(std::uint64_t least, std::uint64_t most) const;
    option_syntax between(double least, double most) const;
    option_syntax one_of(const std::vector<std::string>& values) const;
    option_syntax one_of(const std::vector<int>& values) const;
    /// Accepts a number of bytes with an optional suffix, as parse_size() does, of this range.
    option_syntax size_between(std::uint64_t least, std::uint64_t most) const;
    /// Sets a check of the value. `rule_of` returns an empty text if the value is valid, else the
    /// rule that it violates, as in "use letters and digits".
    option_syntax check(const std::function<std::string(const std::string&)>& rule_of) const;

private:
    CLI::Option* declared_;
    help_option* help_;
};

/// Commands that parse their own arguments, by name.
using raw_commands = std::map<std::string, std::function<int(const std::vector<std::string>&)>>;

/// A command, or the whole program, whose commands are the first words. Refers to it, and is valid
/// while the command_line lives; cheap to copy.
class command_syntax {
public:
    command_syntax(CLI::App& declared, raw_commands& raw, help_page& help) noexcept
        : declared_(&declared), raw_(&raw), help_(&help) {}

    /// Adds the subcommand `name`; `what` is its summary in the help.
    command_syntax add_subcommand(const std::string& name, const std::string& what) const;
    /// Adds the command `name` of the program, which receives all words that follow and returns the
    /// exit status. It is for a command whose syntax differs from that of the others.
    command_syntax add_raw_command(const std::string& name, const std::string& what,
                                   std::function<int(const std::vector<std::string>&)> action) const;
    /// Adds an option or operand of a raw command, so that it is completed.
    void describe_option(help_option option) const;
    /// Requires exactly this number of subcommands.
    void require_subcommands(int count) const;

    /// Adds an option, "-l,--long", or an operand, which does not begin with '-'. The value is
    /// stored in `into`, a variable that outlives the parsing; it is unchanged if the option is
    /// absent. `T` is a string, a number, an optional or a vector of them: the types that
    /// command_line.cpp lists.
    template <class T>
    option_syntax add_option(const char* name, T& into, const char* what) const;
    /// Adds an option without a value: `into` becomes true.
    option_syntax add_flag(const char* name, bool& into, const char* what) const;

    /// Sets the heading under which the help of the program lists the command;
    /// "Commands" without this.
    command_syntax group(const char* heading) const;
    /// Sets the operands of the usage line, where the names of the operands do not suffice.
    command_syntax usage(const char* operands) const;
    /// Adds a line of examples to the help.
    command_syntax example(const char* line) const;
    /// Adds an exit status that only this command has to its help: "4 volume damaged".
    command_syntax further_status(const char* what) const;

    /// Returns the texts of the help. The reference is valid while the command_line lives.
    [[nodiscard]] const help_page& page() const noexcept { return *help_; }

    /// Sets the function that runs when the command line names this command and is valid. It may
    /// call leave() and refuse_usage(). Messages from then on name this command.
    void on_call(std::function<void()> action) const;

private:
    CLI::App* declared_;
    raw_commands* raw_;
    help_page* help_;
};

/// The command line of the program.
class command_line {
public:
    struct texts {
        std::string name;
        std::string description;
        std::string version;  ///< printed by --version
        std::string footer;   ///< printed at the end of the help
    };
    explicit command_line(const texts& about);
    command_line(const command_line&) = delete;
    command_line& operator=(const command_line&) = delete;
    ~command_line();

    /// Returns the program, to declare the commands.
    [[nodiscard]] command_syntax syntax() noexcept;
    /// Returns the help of the program.
    [[nodiscard]] std::string help() const;

    /// Parses the arguments of main and runs the command they name. Prints help if requested, and
    /// errors to standard error. Returns the code passed to leave(), success if the command
    /// returned, or std::nullopt if the arguments name no command.
    [[nodiscard]] std::optional<exit_code> run(int argc, char** argv);

private:
    [[nodiscard]] std::optional<exit_code> run_command(int argc, char** argv);
    [[nodiscard]] static exit_code refuse(const help_page& page, const std::string& problem);
    [[nodiscard]] const help_page& page_of_named() const;

    std::unique_ptr<CLI::App> parser_;
    raw_commands raw_;
    help_page help_;
    std::string footer_;
};

}  // namespace sluice::cli

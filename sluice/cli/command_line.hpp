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

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sluice::cli {

// How commands say what may follow them on the command line. It is CLI11's way, and CLI11 does the work; but
// that is all templates, and a source that includes it compiles for ten seconds longer. So command_line.cpp
// alone does, and what the commands use of it is here.
//
// Thread safety: none; a command line is declared and parsed by the thread of main. All functions allocate,
// and end the program where memory has run out or a declaration contradicts itself.

/// An option, operand or flag of a command. Refers to it, and is valid while the command_line lives; cheap to
/// copy. What it is told holds for what is parsed later. Every function returns the option itself.
class option_syntax {
public:
    explicit option_syntax(CLI::Option& declared) noexcept : declared_(&declared) {}

    /// The command is not understood without it.
    option_syntax required() const;
    /// Takes so many values, at least and at most; -1 as `most`: any number.
    option_syntax expected(int count) const;
    option_syntax expected(int least, int most) const;
    /// Each time it is given it takes one value; otherwise one that collects values takes all that follow.
    option_syntax one_value_each_time() const;
    /// One word has several values, with this character between them.
    option_syntax separated_by(char delimiter) const;
    /// Not together with the other one.
    option_syntax excludes(option_syntax other) const;

    /// What the help calls a value, as FILE.
    option_syntax value_name(const char* name) const;
    /// The help tells the default: what the variable holds now.
    option_syntax shows_default() const;

    /// The values that are understood, both ends included; the help tells them. The types tell what is
    /// printed of the kind of the number.
    option_syntax between(int least, int most) const;
    option_syntax between(unsigned least, unsigned most) const;
    option_syntax between(std::uint64_t least, std::uint64_t most) const;
    option_syntax between(double least, double most) const;
    option_syntax one_of(const std::vector<std::string>& values) const;
    option_syntax one_of(const std::vector<int>& values) const;
    /// A number of bytes, that may have a unit behind: 64k, 1MB, of 1024 each.
    option_syntax size_in_bytes() const;
    /// `complaint` tells what is wrong with a value; empty: nothing.
    option_syntax check(std::function<std::string(const std::string&)> complaint) const;

private:
    CLI::Option* declared_;
};

/// Commands that understand their own words, by name.
using raw_commands = std::map<std::string, std::function<int(const std::vector<std::string>&)>>;

/// A command, or the program as a whole, whose commands are the first words. Refers to it, and is valid while
/// the command_line lives; cheap to copy.
class command_syntax {
public:
    command_syntax(CLI::App& declared, raw_commands& raw) noexcept : declared_(&declared), raw_(&raw) {}

    /// The command `name` of this one; the help says `what` it does.
    command_syntax add_subcommand(const std::string& name, const std::string& what) const;
    /// The command `name` of the program, which gets all words that follow and returns the exit status. For
    /// a command line that has another syntax than the others.
    void add_raw_command(const std::string& name, const std::string& what,
                         std::function<int(const std::vector<std::string>&)> action) const;
    /// So many subcommands must follow, no more and no fewer.
    void require_subcommands(int count) const;

    /// An option, "-l,--long", or an operand, which begins without '-'. Its value goes `into` a variable that
    /// lives until the command line has been parsed; it is unchanged if the option is not given. `T` is a
    /// string, a number, an optional or a vector of them: those that command_line.cpp lists.
    template <class T>
    option_syntax add_option(const char* name, T& into, const char* what) const;
    /// An option without a value: `into` becomes true.
    option_syntax add_flag(const char* name, bool& into, const char* what) const;

    /// Runs when the command line is understood and names this command. May leave().
    void on_call(std::function<void()> action) const;

private:
    CLI::App* declared_;
    raw_commands* raw_;
};

/// The command line of the program.
class command_line {
public:
    struct texts {
        std::string name;
        std::string description;
        std::string version;  ///< what --version prints
        std::string footer;   ///< of the help
    };
    explicit command_line(const texts& about);
    command_line(const command_line&) = delete;
    command_line& operator=(const command_line&) = delete;
    ~command_line();

    /// To declare the commands.
    [[nodiscard]] command_syntax syntax() noexcept;
    /// Names and descriptions of the commands, in the order of their declaration.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> commands() const;

    /// Understands the arguments of main and runs the command they name. Prints help if that is asked for,
    /// and what is not understood to standard error. The outcome is that of leave(), or success if the
    /// command returned; nothing if no command was named.
    [[nodiscard]] std::optional<exit_code> run(int argc, char** argv);

private:
    std::unique_ptr<CLI::App> parser_;
    raw_commands raw_;
};

}  // namespace sluice::cli

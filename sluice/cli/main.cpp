// The sluice program: finds the command, runs it, and turns its outcome into an exit code.

#include <fmt/core.h>

#include <cstdio>
#include <system_error>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"

namespace sluice::cli {

namespace {

constexpr const char* description = "one stack for sharing files";
constexpr const char* footer =
    "Exit status: 0 done; 1 could not be done, standard error says why; 2 the command line was not "
    "understood.";

// What to print when nothing was asked for. Made from the commands themselves, so that it cannot promise
// more.
void print_overview(const command_line& program) {
    fmt::print("sluice " SLUICE_VERSION ": {}\n\nWhat it can do today:\n", description);
    for (const auto& [name, what] : program.commands())
        fmt::print("  {:12} {}\n", name, what);
    fmt::print("\nsluice COMMAND --help explains one of them.\n");
}

exit_code run(int argc, char** argv) {
    command_line program({.name = "sluice",
                          .description = description,
                          .version = "sluice " SLUICE_VERSION,
                          .footer = footer});
    add_commands(program.syntax());
    if (const auto code = program.run(argc, argv)) return *code;
    print_overview(program);
    return exit_code::success;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
    using sluice::cli::exit_code;
    exit_code code = exit_code::failure;
    try {
        code = sluice::cli::run(argc, argv);
    } catch (const std::system_error& cannot_print) {  // fmt::print, when standard output is gone
        std::fprintf(stderr, "sluice: %s\n", cannot_print.what());
    }
    // Output that never arrived is a failure, whatever the command thinks: `sluice … > /dev/full`.
    if ((std::fflush(stdout) != 0 or std::ferror(stdout) != 0) and code == exit_code::success) {
        std::perror("sluice: standard output");
        code = exit_code::failure;
    }
    return static_cast<int>(code);
}

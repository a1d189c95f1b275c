// The sluice program: finds the command, runs it, and turns its outcome into an exit code.

#include <fmt/core.h>

#include <cstdio>
#include <system_error>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"

namespace sluice::cli {

namespace {

constexpr const char* description = "SMB3 file server, client, and tools";
constexpr const char* footer = "Exit status: 0 success, 1 failure, 2 invalid usage.";

// Prints the summary that is shown without arguments. It is generated from the commands, so it
// lists only those that exist.
void print_overview(const command_line& program) {
    fmt::print("sluice " SLUICE_VERSION ": {}\n\nCommands:\n", description);
    for (const auto& [name, what] : program.commands())
        fmt::print("  {:12} {}\n", name, what);
    fmt::print("\nRun 'sluice COMMAND --help' for the options of a command.\n");
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
    } catch (const std::system_error& cannot_print) {  // fmt::print, if standard output is closed
        std::fprintf(stderr, "sluice: %s\n", cannot_print.what());
    }
    // If output was lost, the exit status is failure, whatever the command returned: `sluice … >
    // /dev/full`.
    if ((std::fflush(stdout) != 0 or std::ferror(stdout) != 0) and code == exit_code::success) {
        std::perror("sluice: standard output");
        code = exit_code::failure;
    }
    return static_cast<int>(code);
}

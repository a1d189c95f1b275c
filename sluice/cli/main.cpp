// The sluice program: finds the command, runs it, and turns its outcome into an exit code.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <system_error>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"

namespace sluice::cli {

void leave(exit_code code) {
    // The one exception of the program: CLI11 offers no other way out of a callback.
    throw CLI::RuntimeError(static_cast<int>(code));
}

namespace {

constexpr const char* footer =
    "Exit status: 0 done; 1 could not be done, standard error says why; 2 the command line was not "
    "understood.";

// What to print when nothing was asked for. Made from the commands themselves, so that it cannot promise
// more.
void print_overview(const CLI::App& app) {
    fmt::print("sluice " SLUICE_VERSION ": {}\n\n", app.get_description());
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty()) {
        fmt::print("No command is built in yet. The libraries come first: see ARCHITECTURE.md.\n");
        return;
    }
    fmt::print("What it can do today:\n");
    for (const CLI::App* command : commands)
        fmt::print("  {:12} {}\n", command->get_name(), command->get_description());
    fmt::print("\nsluice COMMAND --help explains one of them.\n");
}

exit_code run(int argc, char** argv) {
    CLI::App app("one stack for sharing files", "sluice");
    app.set_version_flag("--version", "sluice " SLUICE_VERSION);
    app.footer(footer);
    app.require_subcommand(0, 1);
    add_commands(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::RuntimeError& left) {
        return static_cast<exit_code>(left.get_exit_code());
    } catch (const CLI::ParseError& refused) {
        // Prints the help or version that was asked for (then the code is zero), or what was wrong.
        return app.exit(refused) == 0 ? exit_code::success : exit_code::usage;
    }
    if (app.get_subcommands().empty()) print_overview(app);
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

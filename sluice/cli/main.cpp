// The sluice program: finds the command, runs it, and turns its outcome into an exit code.

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/name_services.hpp"

namespace sluice::cli {

namespace {

constexpr const char* description = "SMB3 file server, client, and tools";
constexpr const char* footer = "Exit status: 0 success, 1 failure, 2 invalid usage.";

exit_code run(int argc, char** argv) {
    command_line program({.name = "sluice",
                          .description = description,
                          .version = "sluice " SLUICE_VERSION,
                          .footer = footer});
    add_commands(program.syntax());
    if (const auto code = program.run(argc, argv)) return *code;
    fmt::print("{}", program.help());
    return exit_code::success;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
    using sluice::cli::exit_code;
    exit_code code = exit_code::failure;
    try {
        sluice::cli::choose_name_services();
        code = sluice::cli::run(argc, argv);
    } catch (const std::system_error& why) {
        // fmt::print throws if it cannot write: `sluice … > /dev/full`. Nothing else should.
        sluice::cli::print_error(
            std::ferror(stdout) != 0 ? "write to standard output: " + why.code().message() : why.what());
        return static_cast<int>(code);
    }
    // If output was lost, the exit status is failure, whatever the command returned.
    const bool is_flushed = std::fflush(stdout) == 0;
    if ((not is_flushed or std::ferror(stdout) != 0) and code == exit_code::success) {
        const int reason = is_flushed ? EIO : errno;
        sluice::cli::print_error("write to standard output: " + std::generic_category().message(reason));
        code = exit_code::failure;
    }
    return static_cast<int>(code);
}

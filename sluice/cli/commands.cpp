#include "sluice/cli/commands.hpp"

#include <CLI/CLI.hpp>

namespace sluice::cli {

void add_commands([[maybe_unused]] CLI::App& app) {}

}  // namespace sluice::cli

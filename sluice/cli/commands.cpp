#include "sluice/cli/commands.hpp"

#include <CLI/CLI.hpp>

namespace sluice::cli {

void add_commands(CLI::App& app) {
    add_probe(app);
}

}  // namespace sluice::cli

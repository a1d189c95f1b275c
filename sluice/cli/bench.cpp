// sluice bench: measures, on this machine and where its user says, what the documentation can only tell of
// others.

#include <CLI/CLI.hpp>

#include "sluice/cli/commands.hpp"

namespace sluice::cli {

void add_bench(CLI::App& app) {
    CLI::App* const bench = app.add_subcommand("bench", "measure how fast something is here");
    bench->require_subcommand(1);
    add_bench_fsmutex(*bench);
    add_bench_smb(*bench);
}

}  // namespace sluice::cli

// sluice bench: measures, on this machine and where its user says, what the documentation can only tell of
// others.

#include "sluice/cli/commands.hpp"

namespace sluice::cli {

void add_bench(command_syntax app) {
    const command_syntax bench = app.add_subcommand("bench", "measure how fast something is here");
    bench.require_subcommands(1);
    add_bench_fsmutex(bench);
    add_bench_smb(bench);
}

}  // namespace sluice::cli

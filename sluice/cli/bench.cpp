// sluice bench: measures the performance of this machine, or of a server that the user names.

#include "sluice/cli/commands.hpp"

namespace sluice::cli {

void add_bench(command_syntax app) {
    const command_syntax bench = app.add_subcommand("bench", "run a benchmark")
                                     .group("Tools")
                                     .example("sluice bench smb smb://alice@localhost/share")
                                     .example("sluice bench fsmutex /dev/shm");
    bench.require_subcommands(1);
    add_bench_fsmutex(bench);
    add_bench_smb(bench);
}

}  // namespace sluice::cli

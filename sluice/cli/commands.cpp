#include "sluice/cli/commands.hpp"

namespace sluice::cli {

void add_commands(command_syntax app) {
    add_serve(app);
    add_status(app);
    add_user(app);
    add_streams(app);
    add_get(app);
    add_put(app);
    add_ls(app);
    add_cat(app);
    add_mkdir(app);
    add_rm(app);
    add_fat(app);
    add_lock(app);
    add_probe(app);
    add_bench(app);
}

}  // namespace sluice::cli

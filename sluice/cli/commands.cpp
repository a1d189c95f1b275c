#include "sluice/cli/commands.hpp"

namespace sluice::cli {

void add_commands(command_syntax app) {
    add_serve(app);
    add_config(app);
    add_status(app);
    add_doctor(app);
    add_user(app);
    add_streams(app);
    add_snapshot(app);
    add_get(app);
    add_put(app);
    add_cp(app);
    add_mv(app);
    add_sync(app);
    add_ls(app);
    add_cat(app);
    add_mkdir(app);
    add_rm(app);
    add_fat(app);
    add_lock(app);
    add_probe(app);
    add_bench(app);
    add_completion(app);
    // command_line::run() replaces it by the option --help of the command.
    app.add_subcommand("help", "show the help of a command").group("Tools").usage("[COMMAND]...");
}

}  // namespace sluice::cli

#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

// One function and one file per command: add_<command> in <command>.cpp declares the command's options and
// sets its callback. To add one: declare it here, name it in commands.cpp and list the file in
// CMakeLists.txt.

/// Adds every command to `app`, in the order in which the help names them.
void add_commands(CLI::App& app);

void add_bench(CLI::App& app);
void add_cat(CLI::App& app);
void add_fat(CLI::App& app);
void add_get(CLI::App& app);
void add_lock(CLI::App& app);
void add_ls(CLI::App& app);
void add_mkdir(CLI::App& app);
void add_probe(CLI::App& app);
void add_put(CLI::App& app);
void add_rm(CLI::App& app);
void add_serve(CLI::App& app);
void add_status(CLI::App& app);
void add_user(CLI::App& app);

// The parts of bench.
void add_bench_fsmutex(CLI::App& bench);
void add_bench_smb(CLI::App& bench);

}  // namespace sluice::cli

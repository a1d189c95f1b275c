#pragma once

#include "sluice/cli/command_line.hpp"

namespace sluice::cli {

// One function and one file per command: add_<command> in <command>.cpp declares the command's
// options and sets its callback. To add one: declare it here, name it in commands.cpp and list the
// file in CMakeLists.txt.

/// Adds every command to `app`, in the order in which the help names them.
void add_commands(command_syntax app);

void add_bench(command_syntax app);
void add_cat(command_syntax app);
void add_completion(command_syntax app);
void add_config(command_syntax app);
void add_cp(command_syntax app);
void add_doctor(command_syntax app);
void add_fat(command_syntax app);
void add_get(command_syntax app);
void add_lock(command_syntax app);
void add_ls(command_syntax app);
void add_mkdir(command_syntax app);
void add_mv(command_syntax app);
void add_probe(command_syntax app);
void add_put(command_syntax app);
void add_rm(command_syntax app);
void add_serve(command_syntax app);
void add_snapshot(command_syntax app);
void add_status(command_syntax app);
void add_streams(command_syntax app);
void add_sync(command_syntax app);
void add_user(command_syntax app);

// The parts of bench.
void add_bench_fsmutex(command_syntax bench);
void add_bench_smb(command_syntax bench);

}  // namespace sluice::cli

#pragma once

#include "sluice/cli/command_line.hpp"

namespace sluice::cli {

// The commands of `sluice fat`, by file.
void add_fat_mkfs(command_syntax fat);
void add_fat_build(command_syntax fat);
void add_fat_check(command_syntax fat);
void add_fat_inspect(command_syntax fat);
void add_fat_get(command_syntax fat);
void add_fat_put(command_syntax fat);
void add_fat_mkfile(command_syntax fat);
void add_fat_modify(command_syntax fat);
void add_fat_overlay(command_syntax fat);
void add_fat_undo(command_syntax fat);

}  // namespace sluice::cli

#pragma once

#include "sluice/cli/command_line.hpp"

namespace sluice::cli {

// The commands of `sluice fat`, by file.
void add_fat_make(command_syntax fat);
void add_fat_build(command_syntax fat);
void add_fat_check(command_syntax fat);
void add_fat_look(command_syntax fat);
void add_fat_get(command_syntax fat);
void add_fat_put(command_syntax fat);
void add_fat_mkfile(command_syntax fat);
void add_fat_change(command_syntax fat);
void add_fat_overlay(command_syntax fat);
void add_fat_undo(command_syntax fat);

}  // namespace sluice::cli

#pragma once

#include "sluice/cli/command_line.hpp"

namespace sluice::cli {

// The commands below `sluice fat`, by file: what makes and mends volumes, what looks, what copies, what
// changes, what becomes of overlays.
void add_fat_make(command_syntax fat);
void add_fat_check(command_syntax fat);
void add_fat_look(command_syntax fat);
void add_fat_copy(command_syntax fat);
void add_fat_change(command_syntax fat);
void add_fat_overlay(command_syntax fat);

}  // namespace sluice::cli

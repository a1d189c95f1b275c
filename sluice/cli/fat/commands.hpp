#pragma once

namespace CLI {
class App;
}

namespace sluice::cli {

// The commands below `sluice fat`, by file: what makes and mends volumes, what looks, what copies, what
// changes, what becomes of overlays.
void add_fat_make(CLI::App& fat);
void add_fat_check(CLI::App& fat);
void add_fat_look(CLI::App& fat);
void add_fat_copy(CLI::App& fat);
void add_fat_change(CLI::App& fat);
void add_fat_overlay(CLI::App& fat);

}  // namespace sluice::cli

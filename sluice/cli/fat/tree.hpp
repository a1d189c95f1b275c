#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/fat/image.hpp"

namespace sluice::cli {

/// One thing on a volume, as listings and copies meet it.
struct tree_entry {
    std::string path;  // on the volume, without the first slash
    fat::item_status status;
};

/// What a directory has, in the order of its slots. Leaves with why if it cannot be read.
[[nodiscard]] std::vector<tree_entry> entries_of(fat::file_system& system, const std::string& path);

/// Everything below a path, itself first if it is a file; directories before what is in them. However deep,
/// it takes no stack. Leaves with why if it cannot be read.
[[nodiscard]] std::vector<tree_entry> tree_of(fat::file_system& system, const std::string& path);

[[nodiscard]] fat::item_handle find_or_fail(fat::file_system& system, const std::string& path);

/// "/a/b" for "a/b".
[[nodiscard]] inline std::string shown(const std::string& path) {
    return "/" + path;
}

/// How many contiguous runs a file lies in.
[[nodiscard]] std::uint64_t runs_of(fat::file_system& system, fat::item& file);

/// --strategy of several commands.
[[nodiscard]] fat::lookup_strategy strategy_of(const std::string& name);

}  // namespace sluice::cli

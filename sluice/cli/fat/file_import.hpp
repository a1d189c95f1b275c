#pragma once

#include <filesystem>
#include <string>

#include "sluice/cli/fat/host_reader.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/fat/progress.hpp"

// Files and directories of the host, written to a volume. All functions leave with the reason if
// something fails. Block: for both file systems. Thread safety: one thread.

namespace sluice::cli {

/// Returns the empty file `path`: a new one, or the present one, emptied.
[[nodiscard]] fat::inode_handle open_or_create(fat::file_system& system, const std::string& path);

/// Creates the directory `path`, unless it exists.
void make_directory(fat::file_system& system, const std::string& path);

/// Copies the next file of `files`, which is `from`, to `to`, with its time of modification.
void put_file(fat::file_system& system, const std::filesystem::path& from, host_reader& files,
              const std::string& to, progress_bar& progress);

}  // namespace sluice::cli

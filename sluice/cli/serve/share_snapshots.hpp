#pragma once

#include <memory>
#include <string>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

namespace sluice::cli {

/// Returns the pattern of the previous versions of a share: its own, or that of the server; empty
/// if it has none. Pure.
[[nodiscard]] const std::string& snapshot_pattern_of(const serve_options& options,
                                                     const share_options& share) noexcept;

/// Returns the path of the directory that contains the snapshots of a share; empty if it has none,
/// or its pattern is invalid. Allocates: the result. Blocks: nothing.
[[nodiscard]] std::string snapshot_directory_of(const serve_options& options, const share_options& share);

/// For --previous-versions: returns the rule that a pattern violates, or an empty text.
[[nodiscard]] std::string validate_previous_versions(const std::string& pattern);

}  // namespace sluice::cli

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::cli {

/// Returns the pattern of the previous versions of a share: its own, or that of the server; empty
/// if it has none. Pure.
[[nodiscard]] std::string_view snapshot_pattern_of(const serve_options& options,
                                                   const share_options& share) noexcept;

/// Returns the path of the directory that contains the snapshots of a share; empty if it has none,
/// or its pattern is invalid. Allocates: the result. Blocks: nothing.
[[nodiscard]] std::string snapshot_directory_of(const serve_options& options, const share_options& share);

/// Opens that directory, without following links in it (vfs::open_directory_of_snapshots). Returns
/// std::nullopt if the share has none, or it cannot be opened. Allocates: paths. Blocks: for its
/// file system.
[[nodiscard]] std::optional<io::path_handle> open_snapshot_directory(const serve_options& options,
                                                                     const share_options& share);

}  // namespace sluice::cli

#pragma once

#include "sluice/cli/config/findings.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

// The checks of `sluice config check` that the reader of the file does not make, because the server
// makes them later, or because they depend on the time. Each adds its findings to `to`. `options`
// comes from a file, and complete_shares() has completed it, so it has a record.
// Allocates: texts. Blocks: for the file systems of the paths. Thread safety: the main thread's.

/// Checks the paths of the shares, their names, and the settings that depend on the kind of share.
void check_shares(const serve_options& options, findings& to);

/// Checks the users file, and that the users in the configuration are in it.
void check_users(const serve_options& options, findings& to);

/// Checks ports, other paths, the permissions of the file, and settings that exclude each other.
void check_server(const serve_options& options, findings& to);

}  // namespace sluice::cli

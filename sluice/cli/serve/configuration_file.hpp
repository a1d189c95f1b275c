#pragma once

#include <expected>
#include <string>

#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

/// Completes the options after the configuration file was read: gives each share a unique name, and
/// the settings that all shares have. `file` is for the message. Errors: there is no share.
/// Allocates: names and lists. Blocks: nothing.
[[nodiscard]] std::expected<void, std::string> complete_shares(serve_options& options,
                                                               const std::string& file);

/// Returns the options of the command line, completed with those of the file, or the reason why
/// they are invalid. An empty path: there is no file. Allocates: options. Blocks: for the file
/// system of the file. Thread safety: any thread.
[[nodiscard]] std::expected<serve_options, std::string> with_file(serve_options options,
                                                                  const std::string& file);

/// Returns the configuration file that `sluice config` reads by default, next to the users file:
/// $XDG_CONFIG_HOME/sluice/sluice.toml if that is set, else ~/.config/sluice/sluice.toml, and for
/// root, or without a home, /etc/sluice/sluice.toml. Thread safety: the main thread's.
[[nodiscard]] std::string default_configuration_path();

}  // namespace sluice::cli

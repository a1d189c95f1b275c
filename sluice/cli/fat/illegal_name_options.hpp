#pragma once

#include "sluice/cli/command_line.hpp"
#include "sluice/cli/fat/put_plan.hpp"

namespace sluice::cli {

/// The options of commands that write names of the host.
struct illegal_name_options {
    bool renames = false;
    bool skips = false;
};

/// Adds --rename-illegal and --skip-illegal, which exclude each other.
inline void add_illegal_name_options(command_syntax command, illegal_name_options& options) {
    const option_syntax rename =
        command.add_flag("--rename-illegal", options.renames, "rename files whose names FAT cannot store");
    (void)command.add_flag("--skip-illegal", options.skips, "skip files whose names FAT cannot store")
        .excludes(rename);
}

[[nodiscard]] inline illegal_names policy_of(const illegal_name_options& options) noexcept {
    if (options.renames) return illegal_names::rename;
    return options.skips ? illegal_names::skip : illegal_names::refuse;
}

}  // namespace sluice::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sluice/cli/command_line.hpp"
#include "sluice/cli/fat/build_time.hpp"
#include "sluice/fat/edit/format.hpp"

// The options of the commands that create volumes.

namespace sluice::cli {

struct format_arguments {
    unsigned bits = 0;  // 0: by size
    std::string cluster;
    std::uint32_t sector = 512;  // bytes
    std::uint32_t fats = 2;
    std::optional<std::uint32_t> root_entries;
    std::optional<std::uint32_t> reserved;
    std::string label;
    std::string serial;
    std::string serial_from;
};

/// Adds the options to a command.
void add_format_options(command_syntax command, format_arguments& arguments, const char* serial_help);

/// Returns the rule for volume labels that the text violates, as option_syntax::check() needs it.
[[nodiscard]] std::string validate_label(const std::string& text);

/// Returns the options of a volume created at `when`. The serial number is --serial, else the
/// CRC-32 of --serial-from, else the seconds of `when` if it is fixed, else random.
[[nodiscard]] fat::format_options options_of(const format_arguments& arguments, const build_moment& when);

/// Prints a description of the volume to create.
void describe(const fat::format_plan& plan);

}  // namespace sluice::cli

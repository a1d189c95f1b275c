#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/help_text.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

/// Where a value in effect comes from. `inherited`: a share has it from the settings of the server.
enum class effective_origin : std::uint8_t { standard, file, command_line, environment, inherited };

/// A setting and its value in effect.
struct effective_setting {
    std::string key;
    setting_value value{};       // none: the default
    std::string default_text{};  // as in the help; empty: not set
    effective_origin origin = effective_origin::standard;
    unsigned line = 0;            // in the file, also if it is inherited; 0: none
    std::string source{};         // the name of an environment variable
    bool adds_to_server = false;  // a list that continues that of the server, which it contains
};

struct effective_table {
    std::string name{};  // that of the share
    std::vector<effective_setting> settings{};
};

struct effective_configuration {
    effective_table server{};
    std::vector<effective_table> shares{};
};

/// Returns the values in effect, without secrets, of options that were read from a file and
/// completed. `page` has the options of the command line, whose texts have the defaults.
/// Allocates: the result. Blocks: nothing. Thread safety: the main thread's.
[[nodiscard]] effective_configuration effective_settings(const serve_options& options, const help_page& page);

/// Returns "sluice.toml:3", "default" and the like.
[[nodiscard]] std::string origin_text(const effective_setting& setting, const std::string& file);

}  // namespace sluice::cli

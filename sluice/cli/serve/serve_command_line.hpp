#pragma once

#include <string>
#include <vector>

#include "sluice/cli/command_line.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

/// The words of a `sluice serve` command line. A value of the main thread.
struct serve_arguments {
    serve_options options;
    std::vector<std::string> paths;
    std::string configuration;
    image_options image;
    bool wants_limits = false;
    bool no_confinement = false;
    bool no_discovery = false;
};

/// Declares all options and operands of `sluice serve`, which are stored in `into`. `into` outlives
/// the parsing. Allocates: the declarations.
void declare_serve_options(command_syntax command, serve_arguments& into);

/// Declares only the options that are also settings of the server in a configuration file.
void declare_serve_settings(command_syntax command, serve_arguments& into);

}  // namespace sluice::cli

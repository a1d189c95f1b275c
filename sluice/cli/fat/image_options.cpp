#include "sluice/cli/fat/image_options.hpp"

#include <CLI/CLI.hpp>

namespace sluice::cli {

void add_image_options(CLI::App& command, image_options& options) {
    command
        .add_option("--overlay", options.overlay, "leave the image as it is; this file has what is changed")
        ->type_name("FILE");
}

}  // namespace sluice::cli

#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

/// How else an image is to be used, as the command line says it.
struct image_options {
    std::string overlay;  // where writes go; empty: into the image

    [[nodiscard]] friend bool operator==(const image_options&, const image_options&) = default;
};

/// Adds the options that say it to a command.
void add_image_options(CLI::App& command, image_options& options);

}  // namespace sluice::cli

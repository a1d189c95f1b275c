#pragma once

#include <expected>
#include <string>

#include "sluice/cli/command_line.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace sluice::cli {

/// The options of using an image, from the command line or a configuration file.
struct image_options {
    std::string overlay;    // file for the changes; empty: none, the image is written
    bool journal = false;   // changes are committed through a journal next to the image
    std::string code_page;  // code page of short names; empty: 437
    std::string time_zone;  // time zone of the volume; empty: that of the host

    [[nodiscard]] friend bool operator==(const image_options&, const image_options&) = default;
};

/// Converts them for the file system. Errors: a text with the invalid code page or time zone, and
/// its rule.
[[nodiscard]] std::expected<fat::mount_options, std::string> mount_options_of(const image_options& options);

/// Returns a suffix for the name of an image that distinguishes two uses of it; empty without
/// options.
[[nodiscard]] std::string text_of(const image_options& options);

/// Adds --overlay to a command that reads a volume as bytes.
option_syntax add_overlay_option(command_syntax command, image_options& options,
                                 const char* what = "store changes in FILE; do not modify the image");
/// Adds --code-page.
void add_code_page_option(command_syntax command, image_options& options);
/// Adds --time-zone.
void add_time_zone_option(command_syntax command, image_options& options);
/// Adds all of them to a command that mounts a volume.
void add_image_options(command_syntax command, image_options& options);

}  // namespace sluice::cli

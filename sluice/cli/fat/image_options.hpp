#pragma once

#include <expected>
#include <string>

#include "sluice/cli/command_line.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace sluice::cli {

/// How else an image is to be used, as the command line or a configuration file says it.
struct image_options {
    std::string overlay;    // where writes go; empty: into the image
    bool journal = false;   // what is written goes through a journal beside the image
    std::string code_page;  // of short names; empty: 437
    std::string time_zone;  // of the volume's times; empty: the host's

    [[nodiscard]] friend bool operator==(const image_options&, const image_options&) = default;
};

/// The same for the file system. Errors: a sentence that says what is wrong with a code page or time zone.
[[nodiscard]] std::expected<fat::mount_options, std::string> mount_options_of(const image_options& options);

/// What comes behind the name of an image to tell apart two uses of it; empty if nothing is said.
[[nodiscard]] std::string text_of(const image_options& options);

/// Adds the option of where writes go to a command that looks at a volume as bytes.
void add_overlay_option(command_syntax command, image_options& options);
/// Adds that of how short names are read.
void add_code_page_option(command_syntax command, image_options& options);
/// Adds the option for the time zone of the volume.
void add_time_zone_option(command_syntax command, image_options& options);
/// Adds all of them to a command that mounts a volume.
void add_image_options(command_syntax command, image_options& options);

}  // namespace sluice::cli

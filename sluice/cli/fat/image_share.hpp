#pragma once

#include <expected>
#include <memory>
#include <string>

#include "sluice/cli/fat/image_stack.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::cli {

/// Opens an image, IMAGE or IMAGE@N, as a volume to be shared; held against other writers, unless it is read
/// only, until the volume goes. What was changed is written a second after, and when the volume goes.
/// Errors, as a sentence for people: no such file, no FAT volume in it, somebody else writes to it,
/// an overlay that does not belong to it.
/// `loop` outlives it. Allocates: yes. Blocks: for the image.
[[nodiscard]] std::expected<std::unique_ptr<vfs::volume>, std::string> open_image_share(
    io::io_multiplexer& loop, const std::string& name, bool is_read_only, const image_options& options);

}  // namespace sluice::cli

#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/fat/file_device.hpp"
#include "sluice/io/file_handle.hpp"

// Checks before an image is overwritten. Thread safety: one thread.

namespace sluice::cli {

/// Returns the formats in a range of an image: "ext4", "swap", "gpt partition table". They are those that
/// libblkid detects, also if their checksums are wrong; "data of an unknown format" stands for any other data
/// in the first 128 KiB. The list is empty if there is nothing.
/// Errors: a sentence, if the image cannot be read. Allocates: yes. Blocks: for the image.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> content_of(fat::file_device& image,
                                                                              byte_extent where);

/// Returns whether another process, a loop device or a mount uses the file or block device `path`, which is
/// open as `image`. Returns false where the file system does not support leases. Allocates, blocks: no.
[[nodiscard]] bool is_open_elsewhere(const io::file_handle& image, const std::string& path);

}  // namespace sluice::cli

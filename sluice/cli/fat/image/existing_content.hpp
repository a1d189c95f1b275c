#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "sluice/fat/device/file_device.hpp"
#include "sluice/io/file/file_handle.hpp"

// Checks before an image is overwritten. Thread safety: one thread.

namespace sluice::cli {

/// Returns the formats in a range of an image: "ext4", "swap", "gpt partition table". They are
/// those that libblkid detects, also if their checksums are wrong; "data of an unknown format"
/// stands for any other data in the first 128 KiB. The list is empty if there is nothing.
/// Errors: a sentence, if the image cannot be read. Allocates: yes. Blocks: for the image.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> content_of(fat::file_device& image,
                                                                              byte_extent where);

/// Other users of an image.
enum class image_users : std::uint8_t {
    none,     ///< no other process of this host has it open
    some,     ///< another process, a loop device or a mount uses it
    unknown,  ///< the file system does not support the check
};

/// The message about an image with another user, after its path.
inline constexpr const char* in_use =
    ": in use: another process has it open, or it is mounted or attached to a loop device";

/// Returns whether another process uses the file or block device `path`, which is open as `image`.
/// For files it requests a lease, which the kernel grants to the owner of a file, or a process with
/// CAP_LEASE, on disk and memory file systems. On network file systems and FUSE a lease does not
/// cover other hosts, or processes that use the file by another path: there only `some` is certain.
/// Allocates, blocks: no.
[[nodiscard]] image_users users_of(const io::file_handle& image, const std::string& path);

}  // namespace sluice::cli

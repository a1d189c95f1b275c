#pragma once

#include <cstdint>

namespace sluice::io {

/// How far paths may lead from the directory they are relative to. The kernel enforces it while it
/// resolves a path (openat2), so a concurrent rename or a new symbolic link cannot escape it.
enum class confinement : std::uint8_t {
    none,                 ///< anywhere: `..`, absolute paths and symbolic links are followed
    beneath,              ///< never outside; links that stay inside are followed; no magic links
    beneath_no_symlinks,  ///< nor through any symbolic link
    beneath_one_mount,    ///< as `beneath`, and never onto another mount
    beneath_one_mount_no_symlinks,
};

}  // namespace sluice::io

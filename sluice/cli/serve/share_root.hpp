#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace sluice::cli {

/// The directory or file that the path of a share names at the moment.
struct share_root {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool is_directory = false;

    bool operator==(const share_root&) const = default;
};

/// By path: the roots of those shares whose file system has answered. None: nothing has this name.
using share_roots = std::map<std::string, std::optional<share_root>>;

/// Returns the root of a share. Blocks: for its file system, perhaps forever.
[[nodiscard]] std::optional<share_root> find_share_root(const std::string& path) noexcept;

}  // namespace sluice::cli

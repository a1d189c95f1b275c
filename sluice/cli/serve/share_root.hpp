#pragma once

#include <cstdint>
#include <expected>
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

/// The root, or the reason why there is none. It is empty for the path of a share that is not that
/// of a user: the call that opens the share reports the reason.
using found_root = std::expected<share_root, std::string>;

/// By path: the roots of those shares whose file system has answered.
using share_roots = std::map<std::string, found_root>;

/// Returns a root as the answer of a file system; std::nullopt: nothing has the name.
[[nodiscard]] inline found_root answer_of(const std::optional<share_root>& root) {
    return root ? found_root(*root) : found_root(std::unexpected(std::string()));
}

/// Returns the root without the reason.
[[nodiscard]] inline std::optional<share_root> known_root(const found_root& found) noexcept {
    return found ? std::optional(*found) : std::nullopt;
}

/// Returns the root of a share. Blocks: for its file system, perhaps forever.
[[nodiscard]] std::optional<share_root> find_share_root(const std::string& path) noexcept;

}  // namespace sluice::cli

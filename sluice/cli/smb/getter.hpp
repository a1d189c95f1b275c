#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/smb/file_copier.hpp"
#include "sluice/cli/smb/partial_file.hpp"

namespace sluice::cli {

/// A file of a share and its target on this machine.
struct fetched_file {
    remote_entry from;
    std::filesystem::path to;
    /// The directory that the target stays in, without links on the way, and the path below it.
    /// Null: `to` alone is used, and its links are followed. It outlives the copy.
    const io::path_handle* root = nullptr;
    std::string below{};
};

/// Creates the copier of files from a share to this machine. Thread safety: one thread.
[[nodiscard]] std::unique_ptr<file_copier> create_getter(remote_share& share, const copy_options& how,
                                                         std::vector<fetched_file> files);

/// Returns the path on this machine of `below`, a path of a server below `target`; std::nullopt if
/// a name would lead out of that.
[[nodiscard]] std::optional<std::filesystem::path> host_path_below(const std::filesystem::path& target,
                                                                   const std::string& below);

/// Returns the last name of a path of a share.
[[nodiscard]] std::string last_name_of(const std::string& path);

}  // namespace sluice::cli

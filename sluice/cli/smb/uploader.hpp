#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/smb/file_copier.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::cli {

/// A file of this machine and its target on a share.
struct given_file {
    std::filesystem::path from;
    std::string to;
    std::uint64_t bytes = 0;
    bool may_replace = true;
    /// The directory that the file is in, without links on the way, and the path below it. Null:
    /// `from` alone is used, and its links are followed. It outlives the copy.
    const io::path_handle* root = nullptr;
    std::string below{};
};

/// Creates the copier of files of this machine to a share. Thread safety: one thread.
[[nodiscard]] std::unique_ptr<file_copier> create_uploader(remote_share& share, const copy_options& how,
                                                           std::vector<given_file> files);

/// Creates a directory of a share, unless the name exists. Returns why it could not. Blocks.
[[nodiscard]] std::optional<smb::client::client_error> create_if_needed(remote_share& share,
                                                                        const std::string& path);

/// Creates a directory of a share, unless the name exists. Prints the reason and leaves on failure.
void ensure_directory(remote_share& share, const std::string& path);

}  // namespace sluice::cli

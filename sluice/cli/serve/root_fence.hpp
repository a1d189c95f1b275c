#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "sluice/base/result.hpp"
#include "sluice/io/path/directory_handle.hpp"

namespace sluice::cli {

/// The right of one server to the persistent handles of a directory: an exclusive flock(2) on the
/// directory itself. It excludes a server with another state directory, and one that starts while
/// its predecessor, which was killed, still has a call in progress. The kernel ends it with the
/// last thread of the process.
/// Thread safety: a value, for one thread at a time.
class root_fence {
public:
    /// Claims the directory `path`; std::nullopt if another process has the lock until `end`. Any
    /// account that can read the directory can lock it, so this is no reason to end the server.
    /// File systems without flock(2) on directories (NFS) have no fence: the claim succeeds without
    /// one. Errors: those of opening the directory. Blocks: until `end`.
    [[nodiscard]] static result<std::optional<root_fence>> claim(
        const std::string& path, std::chrono::steady_clock::time_point end) noexcept;
    /// Returns whether another process has a fence on the directory `path`.
    [[nodiscard]] static bool is_claimed(const std::string& path) noexcept;

private:
    explicit root_fence(io::directory_handle directory) noexcept : directory_(std::move(directory)) {}
    io::directory_handle directory_;
};

}  // namespace sluice::cli

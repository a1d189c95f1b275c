#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sluice/cli/smb/sync_plan.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::cli {

/// The device and the inode of an object of this machine.
using object_identity = std::pair<std::uint64_t, std::uint64_t>;

/// Removes `below` only if it still has the listed kind, size and time, and is not one of the
/// objects of `kept`, perhaps under another name. A race remains between this comparison and the
/// removal. Returns why it was not removed. `root` is confined. Blocks: for the file system.
[[nodiscard]] std::optional<std::string> remove_unchanged(const io::path_handle& root,
                                                          const std::string& below, const sync_entry& listed,
                                                          const std::set<object_identity>& kept);

}  // namespace sluice::cli

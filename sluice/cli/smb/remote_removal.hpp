#pragma once

#include <optional>
#include <string>

#include "sluice/cli/smb/remote_tree.hpp"

namespace sluice::cli {

/// Removes an object of a share only if it is still what was listed: a file of the same size and
/// times, a directory, or a link. One open compares and removes, so nothing changes in between. For
/// a link, it removes the link. Returns why it was not removed. Suspends.
[[nodiscard]] io::task<std::optional<std::string>> remove_unchanged(smb::client::tree& in,
                                                                    const remote_entry& listed) noexcept;

/// Returns why an object cannot be moved to another share by copying and removing it: it is a link,
/// or has named streams, which a copy does not have. Returns std::nullopt if it can be. Suspends.
[[nodiscard]] io::task<std::optional<std::string>> why_not_movable(smb::client::tree& in,
                                                                   std::string path) noexcept;

}  // namespace sluice::cli

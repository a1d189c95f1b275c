#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/smb/server/journal/handle_journal.hpp"

namespace sluice::cli {

/// Returns whether a share has continuous availability.
[[nodiscard]] bool is_continuously_available(const serve_options& options,
                                             const share_options& share) noexcept;

/// The journals of the persistent handles of all shares: one for each root, which several shares
/// may have. A server that ends leaves them to the next one.
/// Thread safety: the first loop's thread. Allocates: the journals.
class share_journals {
public:
    /// Opens those of all shares with continuous availability. Waits ten seconds for an earlier
    /// server of a root to end. Errors: a text for the user. Blocks: for the file systems of the
    /// shares and of the state directory. Before the process gives up the right to open files.
    [[nodiscard]] static std::expected<share_journals, std::string> open(const serve_options& options);

    /// Returns the journal of a share; null if it had no continuous availability at the start of the
    /// server. Blocks: for the file system of the share.
    [[nodiscard]] std::shared_ptr<smb::server::handle_journal> of(const share_options& share) const;

private:
    using root_key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
    std::map<root_key, std::shared_ptr<smb::server::handle_journal>> journals_;
};

}  // namespace sluice::cli

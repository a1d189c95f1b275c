#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/cli/serve/root_fence.hpp"
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
    /// shares and of the state directory. Called before the process loses the right to open files.
    [[nodiscard]] static std::expected<share_journals, std::string> open(const serve_options& options);

    /// Returns the journal of a share; null if it had no continuous availability at the start of
    /// the server. Blocks: for the file system of the share.
    [[nodiscard]] std::shared_ptr<smb::server::handle_journal> of(const share_options& share) const;
    /// Returns the paths of the shares whose directory another process has locked: perhaps a server
    /// that has persistent handles of it, and does not know the clients of this one.
    [[nodiscard]] const std::vector<std::string>& of_others() const noexcept { return of_others_; }
    /// Returns the paths of the shares without continuous availability whose journal was removed:
    /// an earlier server may have had persistent handles of them.
    [[nodiscard]] const std::vector<std::string>& removed() const noexcept { return removed_; }
    /// Returns the paths of the shares without continuous availability whose journal was kept: a
    /// later version of this program has written it.
    [[nodiscard]] const std::vector<std::string>& kept_later() const noexcept { return kept_later_; }

private:
    using root_key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
    struct kept {
        std::optional<root_fence> fence;
        std::shared_ptr<smb::server::handle_journal> journal;
    };
    std::map<root_key, kept> journals_;
    std::vector<std::string> of_others_;
    std::vector<std::string> removed_;
    std::vector<std::string> kept_later_;
};

}  // namespace sluice::cli

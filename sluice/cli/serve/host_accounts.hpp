#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/smb/server/session/user_database.hpp"
#include "sluice/vfs/impersonated_volume.hpp"

// The accounts and groups of the host, for users of the server.

namespace sluice::cli {

struct serve_options;

/// Returns the Unix account, with its groups, that the user's file operations run as; std::nullopt
/// if the host has none. It is never root: a password must not open every file of the machine.
/// Blocks: for the account database of the host. Thread safety: any thread.
[[nodiscard]] std::optional<vfs::unix_account> unix_account_of(const std::string& user);

/// The groups of the host that the settings name. A server that has confined itself cannot read the
/// account databases any more, and uses the members that were found before.
/// Thread safety: one thread at a time. Blocks: for the account database of the host.
class host_groups {
public:
    /// `users`, whose membership is looked up, outlives it.
    explicit host_groups(const smb::server::user_database& users) noexcept : users_(users) {}

    /// Returns the members of a group: those that its entry lists, and the users of the server
    /// whose accounts are in it otherwise. Returns std::nullopt if there is no such group, or it
    /// cannot be read any more. Complexity: linear in the users, once for each begin_lookups().
    [[nodiscard]] std::optional<std::vector<std::string>> members_of(const std::string& group);
    /// The following calls look up accounts again.
    void begin_lookups() { numbers_.reset(); }

    /// From now on, the members of a group are those that were found last.
    void confine() noexcept { is_confined_ = true; }
    [[nodiscard]] bool is_confined() const noexcept { return is_confined_; }

private:
    using group_numbers = std::vector<std::pair<std::string, std::vector<gid_t>>>;

    [[nodiscard]] const group_numbers& numbers_of_users();

    const smb::server::user_database& users_;
    std::map<std::string, std::vector<std::string>> found_;
    std::optional<group_numbers> numbers_;  // the groups of each user
    bool is_confined_ = false;
};

/// Adds the groups of the host that the options name and [groups] does not have.
/// Errors: a text that names a group that neither has, and the setting. Blocks: for the account
/// database of the host.
[[nodiscard]] std::expected<void, std::string> add_host_groups(serve_options& options, host_groups& host);

}  // namespace sluice::cli

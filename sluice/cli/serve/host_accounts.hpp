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
struct share_options;

/// Returns the Unix account, with its groups, that the user's file operations run as; std::nullopt
/// if the host has none, or it cannot be looked up. It is never root: a password must not open
/// every file of the machine. Blocks: for the account database of the host. Thread safety: any
/// thread.
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
    /// cannot be read any more. Errors: a text without the name of the group, if there are too many
    /// members or the databases cannot be read. Complexity: linear in the users, once for each
    /// begin_lookups().
    [[nodiscard]] std::expected<std::optional<std::vector<std::string>>, std::string> members_of(
        const std::string& group);
    /// The following calls look up accounts again: those of all users that the server may admit
    /// with these options.
    void begin_lookups(const serve_options& options);
    /// Returns those of these users whose groups were not looked up, because the server had
    /// confined itself before they were added.
    [[nodiscard]] std::vector<std::string> users_without_groups() const;

    /// From now on, the members of a group are those that were found last.
    void confine() noexcept { is_confined_ = true; }
    [[nodiscard]] bool is_confined() const noexcept { return is_confined_; }

private:
    using group_numbers = std::vector<std::pair<std::string, std::vector<gid_t>>>;

    [[nodiscard]] std::expected<void, std::string> look_up_users();

    const smb::server::user_database& users_;
    std::map<std::string, std::vector<std::string>> found_;
    std::vector<std::string> names_;        // that users have, each once
    std::vector<std::string> known_;        // those that were looked up, folded and sorted
    std::optional<group_numbers> numbers_;  // the groups of each user
    bool is_confined_ = false;
};

/// A group that the options name, and whose members cannot be looked up.
struct missing_group {
    const share_options* share = nullptr;  // null: a list of the server
    std::string entry{};                   // "@staff"
    std::string text{};                    // the whole reason, with the setting
};
/// As add_host_groups(), but continues after an error. Returns all errors, which refer to the
/// shares of the options.
[[nodiscard]] std::vector<missing_group> add_known_host_groups(serve_options& options, host_groups& host);

/// Adds the groups of the host that the options name and [groups] does not have. If the server has
/// confined itself, users that were added later are in no group of the host: a share that such
/// groups may only read is one that those users may only read, too.
/// Errors: a text that names a group that neither has, or whose members cannot be looked up, and
/// the setting. Blocks: for the account
/// database of the host.
[[nodiscard]] std::expected<void, std::string> add_host_groups(serve_options& options, host_groups& host);

/// Expands the lists of users of all shares, after add_host_groups(). With large groups this takes
/// too long for an event loop. Thread safety: any thread.
void expand_users(serve_options& options);

}  // namespace sluice::cli

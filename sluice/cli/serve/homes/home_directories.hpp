#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/vfs/impersonated_volume.hpp"

namespace sluice::cli {

/// Returns the account of the host that a user's file operations run as, or none.
using account_lookup = std::function<std::optional<vfs::unix_account>(const std::string& user)>;

/// The directory of the setting `homes`, open, and the directories of the users in it.
///
/// No path leads through a symbolic link in it, so that an account that may create names there
/// cannot make the server share another directory. Other accounts may not: open() refuses a
/// directory that another account owns, or that a group can change. Mounts within the directory of
/// a user are not part of the share, because the user may have made them; the directory itself may
/// be one.
/// Thread safety: a value; functions from one thread at a time. Allocates: texts.
class home_directories {
public:
    /// Opens the directory. `account_of` is called for directories that are created, which belong
    /// to the account that it returns; null: they belong to the account of the server.
    /// Errors: a text without the name of the setting. Blocks: for the file system.
    [[nodiscard]] static std::expected<home_directories, std::string> open(const serve_options& options,
                                                                           account_lookup account_of);

    /// Opens the directory of a user. If it is missing, it is created as a whole: with its owner
    /// and the mode 0700, or not at all. Two servers must not create one at the same time.
    /// A directory whose name differs in case is an error, because it may be that of the user.
    /// Errors: a text with the path and a remedy. Blocks: for the file system, and for the account
    /// database of the host.
    [[nodiscard]] std::expected<io::path_handle, std::string> open_home(const std::string& user) const;

private:
    home_directories(io::path_handle all, std::string path, bool creates, account_lookup account_of)
        : all_(std::move(all)),
          path_(std::move(path)),
          creates_(creates),
          account_of_(std::move(account_of)) {}

    [[nodiscard]] std::expected<void, std::string> create(const std::string& user) const;
    [[nodiscard]] std::expected<void, std::string> check_case(const std::string& user) const;

    io::path_handle all_;
    std::string path_;
    bool creates_;
    account_lookup account_of_;
};

/// Returns how the server finds the accounts of users; null if it does not impersonate them.
[[nodiscard]] account_lookup accounts_of(const serve_options& options);

/// Returns what find_home_roots() is called in reports of file systems that do not answer.
[[nodiscard]] std::string roots_of_homes(const serve_options& options);

/// Creates missing directories of users, and returns the roots of their shares and the directories
/// of their snapshots, or the reasons why there are none. Blocks: for the file system.
[[nodiscard]] share_roots find_home_roots(const serve_options& options, const account_lookup& account_of);

/// Removes the shares of users whose directories cannot be opened or created, with the reason in
/// `options.without_homes`. Errors: those of home_directories::open(), with the name of the
/// setting. Blocks: for the file system.
[[nodiscard]] std::expected<void, std::string> prepare_homes(serve_options& options,
                                                             const account_lookup& account_of);

/// Returns the root of an open directory. Blocks: for its file system.
[[nodiscard]] std::optional<share_root> root_of(const io::path_handle& open) noexcept;

}  // namespace sluice::cli

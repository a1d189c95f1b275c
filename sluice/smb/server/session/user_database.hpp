#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/mutex.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"

namespace sluice::smb::server {

/// One edit of a users file. While it exists, other editors are excluded. Used by one thread.
class users_edit {
public:
    users_edit() noexcept = default;
    users_edit(const users_edit&) = delete;
    users_edit& operator=(const users_edit&) = delete;
    virtual ~users_edit() = default;

    /// Prepares the new file, which is complete, before it replaces the old one.
    /// Errors: end the edit.
    [[nodiscard]] virtual result<void> prepare(const io::file_handle&) noexcept { return {}; }
};

/// A function that begins an edit of the file at `path`. The program supplies it, because exclusion
/// between processes takes more than this component has.
using edit_exclusion = std::function<result<std::shared_ptr<users_edit>>(const std::string& path)>;

/// The users that may log on, in one file: a line `name:hash` for each, where the hash is the NT
/// hash in hexadecimal (docs/formats/users.md). A reader of the file can log on as any of them. So
/// the file is for its owner alone (0600), and one that others can read is refused.
///
/// Edits are atomic: the new file replaces the old one as a whole, or nothing changes. Two programs
/// that edit at once take turns, if they were given the same exclusion. A database in memory has no
/// path. Names are compared without case; domains are ignored.
///
/// Invariant: the known users are those that the last reload or edit has read or written, because
/// both hold `editing_` while they use the file.
/// Monitor: any thread; `mutex_` guards the known users, and is not held while the
/// file is read or written.
/// Blocks: where the file is read or written, and there only for other reloads and edits.
class user_database final : public auth::account_source {
public:
    user_database() noexcept = default;

    /// Errors: ENOENT; EACCES if others can read it ("chmod 600"); EINVAL for a line that is not
    /// one, naming it; those of reading a file.
    [[nodiscard]] static result<std::unique_ptr<user_database>> load(std::string path,
                                                                     edit_exclusion editing);
    /// The same, but empty if there is no such file yet; the first edit creates it.
    [[nodiscard]] static result<std::unique_ptr<user_database>> open(std::string path,
                                                                     edit_exclusion editing);
    /// Returns the default path: $XDG_CONFIG_HOME/sluice/users if that is set, else
    /// ~/.config/sluice/users, and for root, or without a home, /etc/sluice/users.
    [[nodiscard]] static std::string default_path();

    /// Reads the file again. A missing file is not an error if no user of it is known, as in
    /// open(). On error, the known users stay.
    [[nodiscard]] result<void> reload();

    [[nodiscard]] std::optional<auth::account> find(std::string_view user,
                                                    std::string_view domain) noexcept override;

    [[nodiscard]] std::vector<std::string> found_names() const override;
    /// Domains are ignored.
    [[nodiscard]] bool is_same(const account_name& one, const account_name& other) const noexcept override;
    [[nodiscard]] std::uint64_t generation() const noexcept override {
        return generation_.load(std::memory_order_seq_cst);  // pairs with record_change()
    }

    struct admission {
        std::string name;
        std::optional<std::string> password;  // none: the file's
    };
    /// Restricts find() to these users from now on, also after reload(), in place of those admitted
    /// before. An empty list admits all users of the file. Edits and lists are not affected.
    /// Errors: EINVAL for an invalid name or password, and then nothing has changed.
    [[nodiscard]] result<void> admit(std::span<const admission> only);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] bool contains(std::string_view name) const;
    [[nodiscard]] bool is_empty() const noexcept {
        const lock_guard held(mutex_);
        return users_.empty();
    }

    /// Adds a user, or changes a password. Errors: EINVAL for an invalid name or password; those of
    /// the exclusion and of writing a file, and then nothing has changed.
    [[nodiscard]] result<void> set(std::string_view name, std::string_view password);
    /// A user with the hash of the password, for add_stored().
    struct stored_user {
        std::string name;
        auth::nt_hash hash;
    };
    /// The names of the users that add_stored() has added, replaced, and not changed.
    struct stored_names {
        std::vector<std::string> added;
        std::vector<std::string> replaced;
        std::vector<std::string> kept;
    };
    /// Adds users, in one edit. Those that exist are kept, or replaced if `replaces`; the names in
    /// `fresh` differ. Errors: as set(), and then nothing has changed.
    [[nodiscard]] result<stored_names> add_stored(std::span<const stored_user> fresh, bool replaces);
    /// Errors: ENOENT; those of the exclusion and of writing a file.
    [[nodiscard]] result<void> remove(std::string_view name);

    /// Returns whether a name is valid: 1 to 64 bytes, without control characters (below 0x20) and
    /// without `:"/\[]|<>+=;,?*@`.
    [[nodiscard]] static bool is_valid_name(std::string_view name) noexcept;

private:
    struct user {
        std::string name;
        auth::nt_hash hash;
    };
    struct admitted_user {
        std::string name;
        std::optional<auth::nt_hash> hash;  // replaces the hash in the file
    };
    using user_map = std::map<std::string, user>;  // by folded name

    [[nodiscard]] static result<user_map> parse(std::string_view text, std::string_view path);
    [[nodiscard]] static result<user_map> read(const std::string& path);
    template <class Edit>
    [[nodiscard]] result<void> edit(Edit&& change);
    template <class Edit>
    [[nodiscard]] result<void> edit_file(Edit&& change) SLUICE_REQUIRES(editing_);
    // With generation().
    void record_change() noexcept { generation_.fetch_add(1, std::memory_order_seq_cst); }
    // Replaces the known users; `users` is then the map before, for the caller to destroy.
    void publish(user_map& users) noexcept;
    [[nodiscard]] result<void> store(const user_map& users, users_edit& edit) const;

    std::string path_;
    edit_exclusion exclude_editors_;
    mutex editing_;  // one reload or edit at a time; no thread that only asks waits for it
    std::atomic<std::uint64_t> generation_{0};
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    user_map users_ SLUICE_GUARDED_BY(mutex_);
    // By folded name. None: all in the file.
    std::optional<std::map<std::string, admitted_user>> admitted_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server

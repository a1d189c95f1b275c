#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/rpc/rpc_account.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::wire {

/// A share in the form that clients list, [MS-SRVS] 2.2.2.4.
struct rpc_share {
    static constexpr std::uint32_t disk_tree = 0;
    static constexpr std::uint32_t ipc = 3;
    static constexpr std::uint32_t special = 0x80000000;  ///< added to the type: hidden from users
    // Flags, 2.2.4.29.
    static constexpr std::uint32_t dfs = 0x00000001;
    static constexpr std::uint32_t dfs_root = 0x00000002;
    static constexpr std::uint32_t access_based_directory_enum = 0x00000800;
    static constexpr std::uint32_t encrypt_data = 0x00008000;

    std::string name{};
    std::string comment{};
    std::uint32_t type = disk_tree;
    std::uint32_t flags = 0;
    access_mask access_max = file_all_access;  ///< what the share itself permits to everyone
    [[nodiscard]] friend bool operator==(const rpc_share&, const rpc_share&) noexcept = default;
};

/// The user of a pipe.
struct rpc_caller {
    std::string name{};
    std::string domain{};
    bool is_anonymous = false;
    bool is_guest = false;
    bool is_administrator = false;  ///< may see and end the sessions and opens of others
};

/// A part of a list, in the order of the positions of its entries.
template <class Entry>
struct rpc_part {
    std::vector<Entry> entries{};
    std::uint32_t last = 0;  ///< the position after which the list continues
    bool has_more = false;
};

/// A session in the form that clients list, [MS-SRVS] 2.2.4.15.
struct rpc_session {
    std::uint32_t id = 0;  ///< its position, never 0
    std::string client{};  ///< the address
    std::string user{};
    std::string client_type{};  ///< the dialect
    std::uint32_t opens = 0;
    std::uint32_t seconds = 0;  ///< since it was begun
    bool is_guest = false;
    bool is_encrypted = false;
};

/// A user with sessions.
struct rpc_logged_on {
    std::uint32_t id = 0;  ///< the position, which is that of the first of the sessions
    std::string user{};
};

/// An open, 2.2.4.7, except for its path.
struct rpc_file {
    static constexpr std::uint32_t may_read = 1;
    static constexpr std::uint32_t may_write = 2;
    static constexpr std::uint32_t may_create = 4;

    std::uint32_t id = 0;  ///< its position, never 0
    std::uint32_t permissions = 0;
    std::uint32_t locks = 0;
    std::string user{};
};

/// A tree connection, 2.2.4.2.
struct rpc_tree {
    std::uint32_t id = 0;
    std::uint32_t session = 0;  ///< its position, which is that of its session
    std::uint32_t type = rpc_share::disk_tree;
    std::uint32_t opens = 0;
    std::uint32_t seconds = 0;
    std::string client{};
    std::string user{};
    std::string share{};
};

/// How many sessions or opens one call examines.
inline constexpr std::size_t rpc_examined_max = 4096;

/// The server's information for its pipes. Every call queries it again, so it may change. It
/// outlives the pipes. All text is UTF-8. Complexity, where not stated: logarithmic in what the
/// server has, and linear in the result.
class rpc_host {
public:
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string comment() const = 0;
    [[nodiscard]] virtual std::string domain() const = 0;
    [[nodiscard]] virtual std::vector<rpc_share> shares() const = 0;
    [[nodiscard]] virtual unix_time now() const = 0;

    [[nodiscard]] virtual rpc_caller caller() const = 0;
    /// The domain of the server's own accounts.
    [[nodiscard]] virtual rpc_domain account_domain() const = 0;
    /// Return std::nullopt if the SID, or the name, is not known, or is kept from the caller. A
    /// name may have its domain, as DOMAIN\name or name@domain.
    [[nodiscard]] virtual std::optional<rpc_account> account_of(const sid& who) = 0;
    [[nodiscard]] virtual std::optional<rpc_account> account_named(std::string_view name) = 0;
    /// Return one of the server's users, by the relative ID, or by the name in any case, without a
    /// domain; std::nullopt if there is none, or for a caller who may not ask who they are. The
    /// first function, and the next, show one user with each relative ID, and none with
    /// sam_group_of_users.
    [[nodiscard]] virtual std::optional<rpc_account> user_numbered(std::uint32_t number) = 0;
    [[nodiscard]] virtual std::optional<rpc_account> user_named(std::string_view name) = 0;
    /// Returns at most `most` users, those with the smallest relative IDs above `after`, in
    /// ascending order.
    [[nodiscard]] virtual std::vector<rpc_account> users_after(std::uint32_t after, std::size_t most) = 0;
    [[nodiscard]] virtual std::size_t user_count() = 0;
    /// Returns whether two names mean the same user.
    [[nodiscard]] virtual bool is_same_user(std::string_view one, std::string_view other) const = 0;
    /// Returns the aliases of BUILTIN that an account belongs to, by their relative IDs.
    [[nodiscard]] virtual std::vector<std::uint32_t> aliases_of(const sid& who) = 0;
    /// A random number, for the handle of an object.
    [[nodiscard]] virtual guid new_handle_id() = 0;

    /// Returns sessions after a position: for an administrator, of the rpc_examined_max that follow
    /// it; another caller gets all of their own. Complexity: linear in these, or in all sessions.
    [[nodiscard]] virtual rpc_part<rpc_session> sessions(std::uint32_t after) = 0;
    // The rest is called for an administrator only.
    /// Returns the tree connections of whole sessions after a position, and examines about
    /// rpc_examined_max sessions, tree connections and opens.
    [[nodiscard]] virtual rpc_part<rpc_tree> trees(std::uint32_t after) = 0;
    /// Returns the users who have sessions, each once, in the order of their positions; those after
    /// a position. Complexity: linear in the sessions.
    [[nodiscard]] virtual std::vector<rpc_logged_on> logged_on(std::uint32_t after) = 0;
    /// Ends the sessions of a client and a user, before the client gets the reply, except those
    /// that an earlier call is ending; an empty name stands for all. Returns the number of all of
    /// them.
    /// Complexity: linear in the sessions.
    [[nodiscard]] virtual std::size_t end_sessions(std::string_view client, std::string_view user) = 0;
    /// Returns the IDs of opens after a position, at most rpc_examined_max.
    [[nodiscard]] virtual rpc_part<std::uint32_t> file_ids(std::uint32_t after) = 0;
    /// Return an open, and its path, with the share as a directory of a drive; std::nullopt if
    /// there is none. The path takes more time.
    [[nodiscard]] virtual std::optional<rpc_file> file(std::uint32_t id) = 0;
    [[nodiscard]] virtual std::optional<std::string> path_of_file(std::uint32_t id) = 0;
    /// Closes an open, before the client gets the reply. Returns false if there is none.
    [[nodiscard]] virtual bool end_file(std::uint32_t id) = 0;

    rpc_host(const rpc_host&) = delete;
    rpc_host& operator=(const rpc_host&) = delete;

protected:
    rpc_host() noexcept = default;
    ~rpc_host() = default;
};

}  // namespace sluice::smb::wire

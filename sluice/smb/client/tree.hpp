#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree_connection.hpp"
#include "sluice/smb/wire/create/create.hpp"

namespace sluice::smb::client {

/// The parameters of an open.
struct open_options {
    wire::access_mask access = wire::file_generic_read;
    wire::share_access shares = wire::share_access::read;
    wire::create_disposition disposition = wire::create_disposition::open;
    wire::create_options options = wire::create_options::none;
    wire::file_attributes attributes = wire::file_attributes::none;
    wire::oplock_level oplock = wire::oplock_level::none;
};

/// A connected share. Paths are UTF-8, relative to it, with `/` or `\` between names. An empty path
/// is its root.
///
/// The server follows symbolic links. A link that it does not follow is an error
/// (`stopped_on_symlink`).
/// Thread safety: the loop's thread. The session outlives it.
class tree final : public tree_connection {
public:
    /// Connects to \\server\share. With 3.0 and 3.0.2 it also validates NEGOTIATE. Errors: `status`
    /// (`bad_network_name`, `access_denied`), `policy` if the share does not contain files.
    [[nodiscard]] static io::task<outcome<not_null_ptr<tree>>> connect(session& in,
                                                                       std::string_view share) noexcept;
    /// Connects to IPC$, the share of the server's pipes; the paths are their names. Errors: as
    /// connect(); `policy` if it is not a share of pipes.
    [[nodiscard]] static io::task<outcome<not_null_ptr<tree>>> connect_to_pipes(session& in) noexcept;

    /// Opens or creates a file or directory. Errors: `status`; `policy` for a name that is not
    /// UTF-8 or too long.
    [[nodiscard]] io::task<outcome<not_null_ptr<remote_file>>> open(std::string path,
                                                                    open_options how) noexcept;

    /// Returns the status of a file by opening it without access. Errors: as open().
    [[nodiscard]] io::task<outcome<file_status>> status(std::string path) noexcept;

    /// Creates a directory. Errors: as open(): `object_name_collision` if the name exists.
    [[nodiscard]] io::task<outcome<void>> create_directory(std::string path) noexcept;

    /// Removes a file or an empty directory. For a link, removes the link, not its target. Errors:
    /// as open(); `directory_not_empty`; `cannot_delete` if it is read-only.
    [[nodiscard]] io::task<outcome<void>> remove(std::string path, bool is_of_directory) noexcept;

    /// Renames a file or directory within the share. Errors: as open(); `object_name_collision`
    /// unless `replaces`.
    [[nodiscard]] io::task<outcome<void>> rename(std::string from, std::string to, bool replaces) noexcept;

    /// Returns the addresses of the server for further channels, fastest first; an empty list if
    /// the server names none. Errors: `status`, for servers that do not support the query. `port`
    /// is added to each.
    [[nodiscard]] io::task<outcome<std::vector<io::socket_address>>> interfaces(std::uint16_t port) noexcept;

    /// Disconnects from the share.
    [[nodiscard]] io::task<void> disconnect() noexcept;

private:
    explicit tree(session& in) noexcept : tree_connection(in) {}
    [[nodiscard]] static io::task<outcome<not_null_ptr<tree>>> connect_to(session& in, std::string share,
                                                                          wire::share_type wanted) noexcept;
    [[nodiscard]] io::task<outcome<void>> validate_negotiation() noexcept;
};

}  // namespace sluice::smb::client

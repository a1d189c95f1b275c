#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::smb::server {

/// The number of each kind of object that a client can make the server hold; all zero once the
/// clients are gone.
struct server_gauges {
    std::size_t connections = 0;
    std::size_t sessions = 0;
    std::size_t opens = 0;
    std::size_t files = 0;
    std::size_t buffers = 0;
    std::uint64_t cross_loop_posts = 0;  // so far, posts from one loop to another
};

/// An SMB2 and SMB3 server on one loop or several: its shares, connections, sessions and opens
/// ([MS-SMB2] 3.3.1.5).
///
/// Construct, start() listening, run the loops; stop() ends it, and done() waits until nothing is
/// left.
/// Allocates: per connection, session and open, within limits.hpp.
///
/// Thread safety: a connection and all its coroutines belong to its home loop (server_loop.hpp).
/// What loops share, sessions, opens, files and tables, are monitors
/// (docs/decisions/0022-a-mutex-per-object.md). start(), replace_shares(), replace_host_rules(),
/// adopt(), stop() and done() are for the first loop's thread; gauges() is for any.
class smb_server {
public:
    smb_server(const server_dependencies& given, server_configuration configuration) noexcept;
    smb_server(const smb_server&) = delete;
    smb_server& operator=(const smb_server&) = delete;
    ~smb_server();

    /// Restores the persistent opens that an earlier process has recorded in the journals of the
    /// shares, and logs how many. Before start(). Blocks: for the file systems of the shares.
    /// Complexity: linear in the records and their locks.
    void restore();
    /// Binds and listens at every address. If one fails, it listens at none, and the caller may try
    /// again with others. Errors: those of listening_socket_handle::listen, naming the address.
    [[nodiscard]] result<void> start(std::span<const io::socket_address> where) noexcept;
    /// Accepts connections from sockets that already listen, and owns them if it succeeds.
    /// Errors: those of listening_socket_handle::adopt. Allocates: the handles.
    [[nodiscard]] result<void> start_with(std::span<const int> descriptors) noexcept;
    /// Serves these shares from now on. A client that is connected to a share that is missing or
    /// different in the new list keeps its connection, unless its user would have fewer rights in
    /// the new list (end_tree_beyond_rights); new tree connections use the new shares only.
    void replace_shares(std::vector<share_configuration> fresh);
    /// Accepts connections from these addresses only, from now on, and closes those of others.
    void replace_host_rules(host_rules fresh);
    /// Serves a connection that the caller has accepted, on the loop that its socket is attached
    /// to; else on a loop of its choice (loop_choice).
    void adopt(io::socket_handle socket, const io::socket_address& peer) noexcept;
    /// Ends the sessions of users who were removed, or have another password, with their pending
    /// requests, opens and watches; and the durable opens of removed users that wait for their
    /// client. Returns the number of sessions.
    std::size_t end_sessions_of_removed_users() noexcept;
    /// Ends an established session, as NetSessionDel does, and logs it with the name of the
    /// administrator. Returns the number of its opens, which ended with it; std::nullopt if there
    /// is no session with this ID, or another has ended it.
    /// Blocks: for the file systems, when files are removed. The first loop's thread.
    std::optional<std::size_t> end_session(std::uint64_t id, std::string_view by) noexcept;
    /// Closes an open file, as NetFileClose does, by its number in a snapshot, and logs it. Returns
    /// false if it is not open. Blocks, thread: as above.
    bool close_file(std::uint64_t number, std::string_view by) noexcept;
    /// Notifies clients that support it that their sessions are closed, and waits until the kernel
    /// has these messages, for limits::stop_notice_max at most: a client that receives nothing does
    /// not delay the stop. Once, before stop(). Suspends.
    [[nodiscard]] io::task<void> announce_stop() noexcept;
    /// Accepts no more connections and ends the existing ones. Requests in flight are answered or
    /// cut short.
    void stop() noexcept;
    /// Waits until everything has ended after stop(). Suspends.
    [[nodiscard]] io::task<void> done() noexcept;

    /// The state that its connections and commands share.
    [[nodiscard]] server_context& context() noexcept { return context_; }
    [[nodiscard]] const server_context& context() const noexcept { return context_; }
    /// Returns the addresses at which it listens; with the system's choice of port, if it was asked
    /// to choose.
    [[nodiscard]] std::vector<io::socket_address> addresses() const;
    [[nodiscard]] server_gauges gauges() const noexcept;
    /// Returns the state and the traffic of the server, as plain values. Complexity: linear in the
    /// connections; with totals also in sessions, whose numbers it lists, and in opens if their
    /// numbers are wanted; and in the details that `wanted` names. Reads one object after the
    /// other, not all at one moment. Allocates: the result. Any thread.
    [[nodiscard]] server_snapshot snapshot(const snapshot_request& wanted) const;

private:
    smb_server(const server_dependencies& given, server_configuration&& configuration,
               std::vector<share_configuration> shares) noexcept;
    void add_shares(std::vector<std::shared_ptr<share>> kept, std::vector<share_configuration> fresh);
    // server_snapshot.cpp
    [[nodiscard]] limits_in_use in_use() const noexcept;
    void add_shares_to(server_snapshot& into) const;
    void add_paths_to(server_snapshot& into) const;
    void add_totals_to(server_snapshot& into) const;

    // A volume that shares have, several of them perhaps, or had: opens keep it.
    struct served_volume {
        std::weak_ptr<vfs::volume> volume;
        std::weak_ptr<volume_feed> feed;
    };
    [[nodiscard]] served_volume& served_as(const std::shared_ptr<vfs::volume>& which,
                                           std::span<io::io_multiplexer* const> loops);
    [[nodiscard]] std::shared_ptr<volume_feed> run_feed(const std::shared_ptr<vfs::volume>& of);
    [[nodiscard]] io::task<void> run_changes(std::shared_ptr<volume_feed> of) noexcept;
    [[nodiscard]] io::task<void> run_tidying(std::shared_ptr<volume_feed> of) noexcept;
    [[nodiscard]] io::task<void> tidy(vfs::volume& of) noexcept;
    using listeners = std::vector<std::unique_ptr<io::listening_socket_handle>>;
    void accept_on_all(listeners bound) noexcept;
    [[nodiscard]] io::task<void> accept_on(io::listening_socket_handle& listener) noexcept;
    [[nodiscard]] io::task<void> serve(std::size_t loop, io::socket_handle socket,
                                       io::socket_address peer) noexcept;
    [[nodiscard]] std::size_t choose_home(const io::socket_handle& socket, const io::socket_address& peer);
    [[nodiscard]] bool is_denied(const io::socket_address& peer) noexcept;
    void serve_at(std::size_t loop, io::socket_handle socket, const io::socket_address& peer) noexcept;
    [[nodiscard]] std::size_t sockets_max() const noexcept;
    [[nodiscard]] io::task<void> deliver_changes(vfs::volume& of) noexcept;
    [[nodiscard]] std::shared_ptr<share> make_share(std::unique_ptr<share> made) noexcept;

    server_context context_;
    std::vector<served_volume> volumes_;
    listeners listeners_;
    io::task_group listening_;
    bool has_announced_stop_ = false;
};

}  // namespace sluice::smb::server

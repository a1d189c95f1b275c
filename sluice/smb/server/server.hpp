#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/io/listening_socket_handle.hpp"
#include "sluice/io/task_group.hpp"
#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/server/admission.hpp"
#include "sluice/smb/server/agenda.hpp"
#include "sluice/smb/server/background.hpp"
#include "sluice/smb/server/bounded_log.hpp"
#include "sluice/smb/server/breaks_under_way.hpp"
#include "sluice/smb/server/client_quotas.hpp"
#include "sluice/smb/server/configuration.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/data_path.hpp"
#include "sluice/smb/server/event_log.hpp"
#include "sluice/smb/server/file_state.hpp"
#include "sluice/smb/server/lease_table.hpp"
#include "sluice/smb/server/limit_rejections.hpp"
#include "sluice/smb/server/logon_throttle.hpp"
#include "sluice/smb/server/loop_watchdog.hpp"
#include "sluice/smb/server/open_table.hpp"
#include "sluice/smb/server/peer_servers.hpp"
#include "sluice/smb/server/refusal_log.hpp"
#include "sluice/smb/server/replay.hpp"
#include "sluice/smb/server/server_loop.hpp"
#include "sluice/smb/server/session.hpp"
#include "sluice/smb/server/snapshot.hpp"

namespace sluice::smb::server {

/// What a server needs of the world, handed over so that a simulation can stand in for it. All outlive it.
struct server_seams {
    io::io_multiplexer& loop;
    clock_source& clock;
    secret_random_source& random;
    auth::account_source& accounts;
    event_log& log;
    peer_servers* peers = nullptr;  // null: nobody else serves these files
    /// More loops to serve connections on, each run by a thread of its own; `loop` is the first, whose thread
    /// makes, starts and stops the server.
    std::span<io::io_multiplexer* const> other_loops{};
    loop_watchdog* watchdog = nullptr;  // of these loops; null: none
};

/// How much there is of everything a client can make the server hold; all zero once the clients are gone.
struct server_gauges {
    std::size_t connections = 0;
    std::size_t sessions = 0;
    std::size_t opens = 0;
    std::size_t files = 0;
    std::size_t buffers = 0;
    std::uint64_t handed_over = 0;   // so far, what one loop has given another to do
    std::uint64_t latch_sleeps = 0;  // so far, how often a loop has slept for the latch
};

/// An SMB2 and SMB3 server on one loop or several: its shares, connections, sessions and opens ([MS-SMB2]
/// 3.3.1.5).
///
/// Construct, start() listening, run the loops; stop() ends it, and done() tells when nothing is left.
/// Allocates: per connection, session and open, within limits.hpp.
///
/// Thread safety: a connection and all its coroutines belong to its home loop (server_loop.hpp). What loops
/// share, everything else that changes here, is looked at under the latch (latch.hpp): commands are served
/// with it, and give it back where they wait or transfer data. start(), replace_shares(), adopt(), stop() and
/// done() are for the first loop's thread, without the latch; gauges() is for any.
class smb_server {
public:
    smb_server(const server_seams& seams, server_configuration configuration) noexcept;
    smb_server(const smb_server&) = delete;
    smb_server& operator=(const smb_server&) = delete;
    ~smb_server();

    /// Binds and listens at every address; where one cannot be had, at none of them, and then it may be tried
    /// with others. Errors: those of listening_socket_handle::listen, naming the address.
    [[nodiscard]] result<void> start(std::span<const io::socket_address> where) noexcept;
    /// Serves these shares from now on. Who is connected to one that is left out, or is there in another
    /// form, goes on with what he has; new tree connections see only the new ones.
    void replace_shares(std::vector<share_configuration> fresh);
    /// Serves a connection that somebody else has accepted, on the loop its socket is attached to; else on
    /// one that is chosen (loop_choice).
    void adopt(io::socket_handle socket, const io::socket_address& peer) noexcept;
    /// Ends the sessions of users who were removed, or have another password, with their pending requests,
    /// opens and watches; and the durable opens of removed users that wait for their client. Returns the
    /// number of sessions.
    std::size_t end_sessions_of_removed_users() noexcept;
    /// Takes no more connections and ends those there are. Requests under way are answered or cut short.
    void stop() noexcept;
    /// Waits until everything has ended after stop(). Suspends.
    [[nodiscard]] io::task<void> done() noexcept;

    [[nodiscard]] const server_configuration& configuration() const noexcept { return configuration_; }
    [[nodiscard]] const std::vector<std::shared_ptr<share>>& shares() const noexcept { return shares_; }
    /// By name, without regard to case; null if there is none.
    [[nodiscard]] std::shared_ptr<share> find_share(std::string_view name) const noexcept;
    /// Where it listens; with the port the system chose, if it was left the choice.
    [[nodiscard]] std::vector<io::socket_address> addresses() const;
    [[nodiscard]] server_gauges gauges() const noexcept;
    /// What there is and what has been done, as plain values. Complexity: linear in the connections; with
    /// totals also in sessions and opens, of which it takes the numbers; and in what `wanted` names.
    /// Allocates: what it returns. Any thread; takes the latch.
    [[nodiscard]] server_snapshot snapshot(const snapshot_request& wanted) const;

    /// The first.
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return seams_.loop; }
    /// Which of the loops one is, from 0.
    [[nodiscard]] std::size_t number_of(const server_loop& one) const noexcept;
    /// All of them, the first first.
    [[nodiscard]] const std::vector<std::unique_ptr<server_loop>>& loops() const noexcept { return loops_; }
    /// Of everything the loops share.
    [[nodiscard]] server_latch& latch() const noexcept { return latch_; }
    /// `co_await host.transfer(node, std::move(reading))`: runs a transfer of a node without the latch, which
    /// the caller has before and after; with it, if the node takes one at a time and there are several loops.
    template <class T>
    [[nodiscard]] auto transfer(const vfs::node& of, io::task<T>&& work) const noexcept {
        return unlatched_if(loops_.size() == 1 or of.transfers_at_once(), latch_, std::move(work));
    }
    [[nodiscard]] clock_source& clock() const noexcept { return seams_.clock; }
    [[nodiscard]] secret_random_source& random() const noexcept { return seams_.random; }
    [[nodiscard]] auth::account_source& accounts() const noexcept { return seams_.accounts; }
    [[nodiscard]] event_log& log() const noexcept { return log_; }
    /// Null if nobody else serves the same files.
    [[nodiscard]] peer_servers* peers() const noexcept { return seams_.peers; }
    [[nodiscard]] const wire::guid& identity() const noexcept { return identity_; }
    /// Who we say we are when a client logs on, and the mechanisms to do so.
    [[nodiscard]] const auth::server_names& names() const noexcept { return names_; }
    [[nodiscard]] bytes_view security_offer() const noexcept { return security_offer_; }
    [[nodiscard]] vfs::time_point started_at() const noexcept { return started_at_; }

private:
    mutable server_latch latch_;  // first, for it is everybody's
    mutable bounded_log log_;

public:
    limit_rejections rejections;
    client_quotas quotas;  // before everything that is counted
    server::admission admission;
    logon_throttle logons;
    file_table files;  // before whatever holds a file's state
    open_table opens;
    lease_table leases;  // before what may remember a lease that has ended
    refusal_log refusals;
    /// Work that belongs to no connection: time limits of breaks and of durable opens.
    background_work background;
    /// When breaks are to have been answered, durable opens end and sessions expire.
    agenda later;
    breaks_under_way breaks;
    replay_table replays;

    /// Closes a connection of a loop whose buffers are more than its part: the one with most of the client
    /// with most. Complexity: O(n log n) in the connections. Any thread.
    void relieve_buffers(const server_loop& of) noexcept;

    // --- sessions, for the commands ------------------------------------------------------------------------

    /// The first channel of a new session in progress, on `on`; null when there are too many.
    [[nodiscard]] std::shared_ptr<channel> make_session(connection& on);
    /// Another channel of a session, not established yet; null when there are too many. When there is no room
    /// in an established session, the oldest channel ends that is not established.
    [[nodiscard]] std::shared_ptr<channel> make_channel(const std::shared_ptr<session>& of, connection& on);
    [[nodiscard]] std::shared_ptr<session> find_session(std::uint64_t id) noexcept;
    /// All sessions of a session's user from the same client, itself among them, in the order they were made.
    /// Complexity: O(n) in sessions.
    [[nodiscard]] std::vector<session*> sessions_like(const session& one) noexcept;
    /// Waits until the other loops with connections of this one's client have seen which of them are lost:
    /// what he left behind by hanging up is gone when he begins anew. Suspends, for each of those loops at
    /// most a quarter of a second and its turns; with the latch before and after.
    [[nodiscard]] io::task<void> notice_losses(const connection& of) noexcept;
    /// The session was authenticated just now: its lifetime begins, if it is limited.
    void begin_lifetime(session& of);
    /// Ends a session on all its channels: its requests are interrupted, its opens closed (or kept, if
    /// durable and `keep_durable`), its trees disconnected.
    void end_session(session& ending, bool keep_durable) noexcept;
    /// Takes a channel from its session. Without an established one left, that ends as by a lost connection.
    void end_channel(channel& ending) noexcept;
    /// Ends a tree connection, with what is open on it.
    void end_tree(session& of, tree& ending) noexcept;

private:
    void add_shares(std::vector<share_configuration> fresh);
    // snapshot.cpp
    [[nodiscard]] traffic traffic_now() const noexcept;
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
    [[nodiscard]] io::task<void> accept_on(io::listening_socket_handle& listener) noexcept;
    [[nodiscard]] io::task<void> serve(std::size_t loop, io::socket_handle socket,
                                       io::socket_address peer) noexcept;
    [[nodiscard]] std::size_t choose_home(const io::socket_handle& socket, const io::socket_address& peer);
    void serve_at(std::size_t loop, io::socket_handle socket, const io::socket_address& peer) noexcept;
    void end_opens_left() noexcept;
    [[nodiscard]] std::size_t sockets_max() const noexcept;
    // To be held on that loop only, where connections end.
    [[nodiscard]] std::vector<std::shared_ptr<connection>> connections_of(const std::string& client,
                                                                          const server_loop& at) noexcept;
    [[nodiscard]] io::task<void> notice_losses_at(server_loop& there, std::string client,
                                                  io::io_multiplexer& home) noexcept;
    [[nodiscard]] io::task<void> tell_changes(vfs::change_feed& of) noexcept;
    [[nodiscard]] std::shared_ptr<share> make_share(std::unique_ptr<share> made) noexcept;

    server_seams seams_;
    server_configuration configuration_;
    std::vector<std::shared_ptr<share>> shares_;
    std::vector<served_volume> volumes_;
    std::vector<std::unique_ptr<io::listening_socket_handle>> listeners_;
    std::unordered_map<std::uint64_t, std::shared_ptr<session>> sessions_;
    std::unordered_map<connection*, connection*> connections_;
    std::vector<std::unique_ptr<server_loop>> loops_;  // the first is that of the seams
    loop_choice homes_;
    traffic traffic_of_ended_;  // of connections that are gone
    io::task_group listening_;
    wire::guid identity_{};
    auth::server_names names_;
    std::vector<std::byte> security_offer_;
    vfs::time_point started_at_{};
    std::uint64_t next_session_id_ = 0;
    std::size_t sockets_ = 0;  // of connections, from their acceptance on
    clock_source::steady_time relieve_next_{};
    bool is_stopping_ = false;
};

}  // namespace sluice::smb::server

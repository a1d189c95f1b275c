#pragma once

#include <cstddef>
#include <memory>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/session/session.hpp"

// How sessions, their channels and their tree connections begin and end
// ([MS-SMB2] 3.3.5.5, 3.3.5.6, 3.3.7.1).

namespace sluice::smb::server {

/// The first channel of a new session in progress, on `on`; null if there are too many.
[[nodiscard]] std::shared_ptr<channel> make_session(server_context& host, connection& on);
/// Another channel of a session, not established yet; null if there are too many. If an established
/// session has no room for it, the oldest channel that is not established ends.
[[nodiscard]] std::shared_ptr<channel> make_channel(server_context& host, const std::shared_ptr<session>& of,
                                                    connection& on);
/// Starts the lifetime of a session that has been authenticated, if lifetimes are limited.
void begin_lifetime(server_context& host, session& of);

/// Ends a session on all its channels: its requests are interrupted (on other loops, soon),
/// its opens closed (or kept, if durable and `keep_durable`), its trees disconnected. Does
/// nothing if it has ended. Returns whether this call has ended it.
bool end_session(server_context& host, session& ending, bool keep_durable) noexcept;
/// The same, if its client has not authenticated yet.
void end_session_in_progress(server_context& host, session& ending) noexcept;
/// As end_session(), and waits until its opens have ended, also if another loop is ending it: for a
/// reply after which the client opens the files again. An open that another request is closing may
/// still be leaving its file. `by`: the caller's loop. Suspends: for the rest of a turn of the
/// other loop.
[[nodiscard]] io::task<void> co_end_session(server_context& host, io::io_multiplexer& by,
                                            std::shared_ptr<session> ending, bool keep_durable) noexcept;
/// The connection of a channel is lost: the channel stays until its requests have ended. Without
/// another established channel, the session ends. On the loop of the connection.
void lose_channel(server_context& host, channel& losing) noexcept;
/// Takes a channel from its session. Without another established channel, the session ends as if
/// the connection were lost.
void end_channel(server_context& host, channel& ending) noexcept;
/// Ends a tree connection, and closes its opens. Does nothing if it has ended.
void end_tree(server_context& host, session& of, const tree& ending) noexcept;
/// Ends a tree connection of a share that a reload has replaced, if its user may do less through
/// the new share of that name: may not connect, may only read, or must encrypt. The client may
/// connect again, with the new rights. A share that a reload has removed keeps its tree
/// connections. Returns whether it has ended it.
bool end_tree_beyond_rights(server_context& host, session& of, const tree& known) noexcept;
/// The same for the tree connections of all sessions, after a reload has published and withdrawn
/// shares. A later one checks itself after the session lists it: the mutex of the session orders
/// both. Returns how many it has ended.
std::size_t end_trees_beyond_rights(server_context& host) noexcept;
/// Ends the sessions of users who were removed, or have another password, with their pending
/// requests, opens and watches; and the durable opens of removed users that wait for their client.
/// Returns the number of sessions.
std::size_t end_sessions_of_removed_users(server_context& host) noexcept;
/// Notifies the clients that support it, on all their channels, that their sessions are closed: the
/// server is about to stop. Once. Returns the number of sessions.
std::size_t announce_end_of_sessions(server_context& host) noexcept;
/// Ends every open that is left: durable opens outlive their sessions, but not the server.
void end_all_opens(server_context& host) noexcept;

}  // namespace sluice::smb::server

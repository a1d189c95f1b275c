#pragma once

#include <memory>
#include <span>

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"

// Opens that survive the server process ([MS-SMB2] 3.3.5.9.10, Open.IsPersistent): their grant, and
// the records from which the next process restores them (journal/handle_journal.hpp).
//
// A record is stored in the section of the file that changes what it has. So the order of records
// is that of the states, and a record is complete before any reply that promises its state.

namespace sluice::smb::server {

/// Returns whether the share and the connection of a request have persistent opens.
[[nodiscard]] bool may_be_persistent(const request& r) noexcept;

/// Makes a new open persistent if its CREATE asks for that, and its share, user and file allow it.
/// Returns whether it is. After the commit, before the reply. Blocks: for the file system of the
/// state directory, when the journal grows.
[[nodiscard]] bool grant_persistence(const request& r, open& fresh, const wire::create_args& args);

/// Prepares the record of an open: the names, and the fields that never change.
void describe_for_record(const open& one, const durability& how, persistence& made);

/// Stores the present state of an open, if it is persistent. Complexity: linear in its locks.
void record_state(const file_section& held, open& one) noexcept;
/// Do the same for all opens of a file, for those of a lease, and for those whose LOCK requests
/// have ended their wait in this section. Without persistent opens of the file, they only compare.
void record_states(const file_section& held, file_state& file) noexcept;
void record_lease(const file_section& held, const lease& of) noexcept;
void record_late_grants(const file_section& held, file_state& file) noexcept;

/// Returns whether a persistent open of the file is without its client: then no CREATE of the file
/// succeeds, whatever the share modes say, except those that return that open, or take it over
/// ([MS-SMB2] 3.3.5.9). Complexity: linear in the opens, if any is persistent.
[[nodiscard]] bool is_in_grace(const file_section& held, file_state& file) noexcept;
/// Returns the same of the file's streams, which a CREATE removes that overwrites the file, and the
/// removal of the file. Complexity: linear in the streams and their opens.
[[nodiscard]] bool has_stream_in_grace(const file_section& held, server_context& host,
                                       file_state& file) noexcept;
/// Returns whether an open of the file, or of a stream of it, is persistent: then no other file
/// takes its name. Complexity: linear in the streams.
[[nodiscard]] bool has_persistent_opens(const file_section& held, server_context& host,
                                        file_state& file) noexcept;
/// Returns whether no client can answer a break of the lease, and an open of it is persistent.
[[nodiscard]] bool is_of_absent_client(const file_section& held, const lease& of) noexcept;
/// The client of the lease is away: ends the break that it has not answered. Wakes its waiters.
void end_break_of_absent_client(const file_section& held, server_context& host, lease& of) noexcept;

/// The client is back: the time for which its restored open waits is over. Before the reply.
void record_reconnect(open& one) noexcept;
/// The client is away from now on, and the open ends after `timeout`, also if the server is
/// restarted.
void record_disconnect(server_context& host, open& one, std::chrono::milliseconds timeout) noexcept;

/// Before the server ends: the present records stay, and no file that one of them is about is
/// removed with the opens that now end.
void leave_persistent_opens(server_context& host) noexcept;

/// The open leaves its file: its record is cleared, or, if it removes the file, after that.
void forget_record(const file_section& held, open& one) noexcept;
/// The removal of the file has ended, or will not happen: the records of the opens that have asked
/// for it, and that their clients have closed, are cleared.
void forget_removers(const file_section& held, std::span<const std::shared_ptr<open>> removers) noexcept;

}  // namespace sluice::smb::server

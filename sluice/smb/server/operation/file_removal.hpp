#pragma once

#include <memory>
#include <optional>

#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/file/open_protocol.hpp"
#include "sluice/smb/server/open/open.hpp"

// The removal of a file with its last open ([MS-FSA] 2.1.5.5).

namespace sluice::smb::server {

class server_context;

/// Carries out the caller's duty after leaving a file: removes the stream or file, and the file
/// whose removal waited for the stream. Returns the status if it was done at once. Otherwise a task
/// of the server does it, which sets `removed`, if that is not null; it outlives the task then.
/// Blocks: in an inline domain, for the file system.
[[nodiscard]] std::optional<wire::nt_status> carry_out_removal(
    server_context& host, const std::shared_ptr<file_state>& file, open_protocol::removal_duty duty,
    one_shot_event<wire::nt_status>* removed) noexcept;

/// The same for a request: the calls run in the domain of the file. Returns the status of the
/// removal. If another server has the file open, still checks it after
/// limits::peer_attempts_max attempts, or, with other servers, a rename delays the removal, returns
/// success, and a task of the server removes it after their last close. Suspends.
[[nodiscard]] io::task<wire::nt_status> co_carry_out_removal(server_context& host, io::io_multiplexer& loop,
                                                             std::shared_ptr<file_state> file,
                                                             open_protocol::removal_duty duty) noexcept;

/// A CREATE has failed: its open leaves its session and its file, if it is in one, and
/// the file that the CREATE has created goes with it, unless another open has joined. It
/// has never been live.
void leave_uncommitted(server_context& host, const std::shared_ptr<open>& leaving, bool has_created) noexcept;

/// Removes a file that a CREATE has created, and that has no open. `through` keeps its volume.
void remove_unopened(server_context& host, vfs::node_ptr node, std::shared_ptr<share> through) noexcept;

}  // namespace sluice::smb::server

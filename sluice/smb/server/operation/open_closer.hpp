#pragma once

#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

class request;
class server_context;

/// Ends an open, for CLOSE, LOGOFF, TREE_DISCONNECT, the loss of its connection, and the end of its
/// durability ([MS-SMB2] 3.3.4.17). Clients can no longer refer to the open; its waiting requests
/// end; its locks and its oplock are released. If it was the last open of a delete-pending file,
/// the file is removed. Everything by which other clients could detect the end waits for the last
/// pending_write. If the CREATE is in progress, it does the rest.
///
/// `one` exists as long as requests hold it. Blocks: for the file system, when a file is removed.
/// Returns the status of that removal, success otherwise; FILE_CLOSED if the open has ended before.
wire::nt_status end_open(server_context& host, open& one) noexcept;
/// The same for a CREATE whose reply cannot be sent. Also removes a file that the CREATE has
/// created, unless there are other opens of it.
void end_created_open(server_context& host, open& one, bool was_created) noexcept;
/// The same if the open still belongs to `of` (null: if its client is gone). Returns whether this
/// call has ended it.
bool end_open_of(server_context& host, open& one, const session* of) noexcept;
/// Ends an open whose phase the caller has changed from `live` to `ended`.
wire::nt_status finish_end(server_context& host, open& one) noexcept;

/// The same as end_open() for CLOSE, whose reply shows other clients the end. Suspends: until
/// pending writes are done.
[[nodiscard]] io::task<wire::nt_status> co_end_open(request& r, std::shared_ptr<open> one) noexcept;

/// Counts that the session of a request has too many opens for another. Returns
/// TOO_MANY_OPENED_FILES.
[[nodiscard]] wire::nt_status refuse_open(const request& r) noexcept;

/// Ends every watch of a directory that will be removed, with DELETE_PENDING.
void end_watches_of_removed(const file_section& held, file_state& directory) noexcept;

/// A change of a file's content through an open, in progress.
///
/// Invariants:
///   1. While it exists, no other client caches reads of the file: its constructor breaks their
///      leases and oplocks, and grant_caching() grants none.
///   2. The open keeps its place in the file until the last of these is destroyed, even if it has
///      ended: an open that conflicts with it finds the file as the request has left it.
/// Loop-owned, in the frame of a request.
class [[nodiscard]] pending_write {
public:
    /// When the clients that cache the file's directory notice the change.
    enum class shown : std::uint8_t { at_close, at_once };

    /// `when`: with `at_once`, the caller shows the change itself (own_change).
    pending_write(server_context& host, std::shared_ptr<open> of, shown when = shown::at_close) noexcept;
    pending_write(const pending_write&) = delete;
    pending_write& operator=(const pending_write&) = delete;
    ~pending_write();

    /// Returns false if the open has ended before: then nothing may be written.
    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    server_context& host_;
    std::shared_ptr<open> of_;  // null if it had ended
};

}  // namespace sluice::smb::server

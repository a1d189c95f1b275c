#pragma once

#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

class request;
class server_context;

/// Ends an open, for CLOSE, LOGOFF, TREE_DISCONNECT, the loss of its connection, and the end of its
/// durability ([MS-SMB2] 3.3.4.17). The open can no longer be named; its waiting requests end; its
/// locks and its oplock are released; if it was the last open of a file to be removed, the file is
/// removed. Everything by which other clients could detect its end waits for its last
/// pending_write.
///
/// `one` lives on as long as requests hold it. Blocks: for the file system, when a file is removed.
/// Returns the status of that removal, success otherwise.
wire::nt_status end_open(server_context& host, open& one) noexcept;

/// The same for CLOSE, whose reply shows other clients the end. Suspends: until pending writes are
/// done.
[[nodiscard]] io::task<wire::nt_status> co_end_open(request& r, std::shared_ptr<open> one) noexcept;

/// Ends the watch of an open, if it has one.
void end_watch(open& of) noexcept;

/// A directory will be removed: ends every watch of it with DELETE_PENDING.
void end_watches_of_removed(file_state& directory) noexcept;

/// A change of a file's content through an open, in progress: a request that releases the latch on the way,
/// to write on another loop or to wait for a disk, holds one.
///
/// Invariants:
///   1. While it exists, no other client caches reads of the file: its constructor breaks their leases and
///      oplocks, and grant_caching() grants none.
///   2. The open keeps its place in the file until the last of these is destroyed, even if it has ended: an
///      open that conflicts with it finds the file as the request has left it.
/// Thread safety: the caller of constructor and destructor holds the latch.
class [[nodiscard]] pending_write {
public:
    pending_write(server_context& host, std::shared_ptr<open> of) noexcept;
    pending_write(const pending_write&) = delete;
    pending_write& operator=(const pending_write&) = delete;
    ~pending_write();

private:
    server_context& host_;
    std::shared_ptr<open> of_;
};

}  // namespace sluice::smb::server

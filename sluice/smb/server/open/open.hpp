#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/open/app_instance.hpp"
#include "sluice/smb/server/open/channel_sequence.hpp"
#include "sluice/smb/server/open/directory_scan.hpp"
#include "sluice/smb/server/open/kept_times.hpp"
#include "sluice/smb/server/open/lock_sequences.hpp"
#include "sluice/smb/server/open/named_pipe.hpp"
#include "sluice/smb/server/open/notify_watch.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/tree.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/vfs/node.hpp"

namespace sluice::smb::server {

class channel;
class session;
class lease;

/// The state that an open needs to outlive its connection ([MS-SMB2] 3.3.1.10, Open.Durable…).
struct durability {
    std::string owner;  // the user that may reclaim it
    std::string owner_domain;
    bool is_second_generation = false;
    bool is_resilient = false;  // requested by LMR_REQUEST_RESILIENCY: kept whether it caches or not
    std::chrono::milliseconds timeout{};
    std::optional<timer_queue::entry> end;  // while its client is gone: when it ends
};

/// One CREATE that succeeded and has not been closed ([MS-SMB2] 3.3.1.10): a file, a directory, a stream, or
/// a named pipe.
///
/// Held by the open_table while it can be named; a request that works with it across a suspension holds it
/// too, and looks at `is_closed` afterwards.
///
/// Invariants:
///   1. An open with a `session` has not ended, and is in that session's table; without one it is not.
///   2. While it is in the list of its file, its entry counts there.
///   3. `durable->end` is set while its client is gone, and then the timer queue has the entry.
///   4. An open that has ended has no watch, and goes after its last write.
/// Thread safety: under the server's latch.
class open {
public:
    open() noexcept;
    open(const open&) = delete;
    open& operator=(const open&) = delete;
    ~open();

    [[nodiscard]] bool is_pipe() const noexcept { return pipe != nullptr; }
    [[nodiscard]] bool is_directory() const noexcept {
        return node != nullptr and node->kind() == vfs::node_kind::directory;
    }
    /// Returns whether all of `rights` were granted.
    [[nodiscard]] bool grants(wire::access_mask rights) const noexcept { return wire::has(access, rights); }

    /// Adds it to the opens of `file`; removes it. Complexity: linear in those.
    void enter_file();
    void leave_file() noexcept;

    quota_hold counted;        // among the opens
    quota_hold counted_locks;  // its locks, and those it waits for
    quota_hold counted_kept;   // while it is kept without its client

    wire::file_id id{};
    server::session* session = nullptr;  // null once closed, and while durable and without its client
    std::shared_ptr<server::tree> tree;
    /// The channel of the last reply to a CREATE for it: a break of its oplock on another channel could
    /// overtake that. Compared, never dereferenced: the channel may be gone.
    const server::channel* made_on = nullptr;

    // A file, directory or stream; or else a pipe.
    vfs::node_ptr node;
    std::shared_ptr<file_state> file;
    share_entry entry;  // in the protocol of `file`, while it counts there
    std::unique_ptr<named_pipe> pipe;
    /// Another handle of the file, for replies that are sent from it: they may outlive this. Null
    /// until the first of them.
    std::shared_ptr<io::file_handle> pages;
    // Its lock bytes for other servers, for the file and, if this is a stream, for the stream's
    // file.
    peer_claim claim;
    peer_claim claim_to_base;

    wire::access_mask access = wire::access_mask::none;
    wire::share_access share_access = wire::share_access::none;
    wire::create_options create_options = wire::create_options::none;  // as requested
    wire::create_action action = wire::create_action::opened;          // that its CREATE took
    bool deletes_on_close = false;
    bool is_closed = false;                         // cannot be named any more
    bool is_in_opens_to_end = false;                // its lease cannot be broken: lease_breaks.cpp
    std::uint32_t pending_writes = 0;               // they keep its place in the file: see open_closer.hpp
    event<wire::nt_status>* told_of_end = nullptr;  // the CLOSE that waits for these
    channel_sequence sequence;
    std::uint64_t position = 0;  // FilePositionInformation: kept, not used
    std::uint32_t mode = 0;      // FileModeInformation

    kept_times kept;

    // The client's caching: an oplock of this open, or the lease it shares with others. Null: none.
    std::shared_ptr<server::lease> lease;

    wire::guid client{};
    std::optional<durability> durable;      // null: ends with its connection
    std::optional<wire::guid> create_guid;  // from the CREATE that opened it
    // Whether the same CREATE once more returns this open: until it is used ([MS-SMB2] 3.3.1.10).
    bool is_replay_eligible = false;
    std::optional<app_instance> instance;  // the application that has it open

    server::lock_sequences lock_requests;
    std::shared_ptr<directory_scan> scan;  // a query in progress holds it, too
    fifo_lock watch_begins;                // held while a request begins the watch
    std::unique_ptr<notify_watch> watch;
};

}  // namespace sluice::smb::server

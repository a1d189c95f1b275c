#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/file/lock_sequences.hpp"
#include "sluice/smb/server/open/app_instance.hpp"
#include "sluice/smb/server/open/channel_sequence.hpp"
#include "sluice/smb/server/open/directory_scan.hpp"
#include "sluice/smb/server/open/directory_watch.hpp"
#include "sluice/smb/server/open/named_pipe.hpp"
#include "sluice/smb/server/open/notify_watch.hpp"
#include "sluice/smb/server/open/open_progress.hpp"
#include "sluice/smb/server/open/persistence.hpp"
#include "sluice/smb/server/open/sticky_times.hpp"
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
    // Requested by LMR_REQUEST_RESILIENCY: kept whether it caches or not.
    bool is_resilient = false;
    bool is_persistent = false;  // kept at any loss of its client, and recorded (persistence)
    std::chrono::milliseconds timeout{};
    std::optional<timer_queue::entry> end;  // while its client is gone: when it ends
    std::uint32_t disconnects = 0;          // how often its client was gone; identifies `end`
};

/// The part of an open that the mutex of its file guards.
///
/// Invariant: while the open is in the list of its file, its entry counts there.
struct open_in_file {
    share_entry entry;
    /// The client's caching: an oplock of this open, or the lease it shares
    /// with others. Null: none.
    std::shared_ptr<server::lease> lease;
    bool deletes_on_close = false;
    bool is_creation_undone = false;   // its CREATE has failed after it has created the file
    bool is_ending = false;            // the open has ended, and leaves
                                       // the file after its last write
    std::uint32_t pending_writes = 0;  // keep the open in the file:
                                       // see open_closer.hpp
    one_shot_event<wire::nt_status>* writes_ended = nullptr;  // the CLOSE that waits for these
    quota_hold counted_locks;                                 // its locks, and those it waits for
    server::lock_sequences lock_requests;
    // Its lock bytes for other servers, for the file and, if this is a stream, for the stream's
    // file.
    peer_claim claim;
    peer_claim claim_to_base;
    /// Ends with the open or the directory. Destroyed with the open, because requests that hold the
    /// open use the watch without the mutex.
    std::unique_ptr<notify_watch> watch;
    /// Null if it is not persistent.
    std::unique_ptr<persistence> persistent;
    /// The watch that a lease of a directory needs; destroyed with the open.
    std::unique_ptr<server::directory_watch> directory_watch;
};

/// One CREATE that succeeded and has not been closed ([MS-SMB2] 3.3.1.10): a file, a directory, a
/// stream, or a named pipe.
///
/// The open_table holds it while clients can refer to it. A request that uses it across a
/// suspension also holds it, and checks has_ended() afterwards.
///
/// Invariants:
///   1. The phase changes from `making` to `live` to `ended`, or from `making` to `ended`. Exactly
///      one caller ends the open.
///   2. The open has a session from admission (session::admit) until it ends, or until its client
///      is gone and a durable open waits for it.
///   3. While its client is gone, the open is counted as kept, unless it is persistent.
///      `durable->end` is set from the start of its timer on.
///   4. An open that has ended leaves its file after its last write.
/// Monitor: any thread. The CREATE sets the public members, which do not change once the phase is
/// live. `mutex_` guards the rest, except for atomic members, and in_file(), which the mutex of the
/// file guards.
class open : public std::enable_shared_from_this<open> {
public:
    open() noexcept;
    open(const open&) = delete;
    open& operator=(const open&) = delete;
    ~open();

    [[nodiscard]] bool is_pipe() const noexcept { return pipe != nullptr; }
    [[nodiscard]] bool is_directory() const noexcept {
        return node != nullptr and node->kind() == vfs::node_kind::directory;
    }
    /// Returns whether it is a file as it was at the time of a snapshot, which nothing changes.
    [[nodiscard]] bool is_past() const noexcept { return past != nullptr; }
    /// Returns whether all of `rights` were granted.
    [[nodiscard]] bool grants(wire::access_mask rights) const noexcept { return wire::has(access, rights); }

    // --- its phase: atomic

    [[nodiscard]] open_phase phase() const noexcept { return progress.phase(); }
    [[nodiscard]] bool is_live() const noexcept { return phase() == open_phase::live; }
    [[nodiscard]] bool has_ended() const noexcept { return phase() == open_phase::ended; }
    /// Makes the open live, when its CREATE is complete. Returns false if the open has ended
    /// before.
    [[nodiscard]] bool go_live() noexcept { return progress.go_live(); }
    /// Ends the open. Returns the previous phase: exactly one caller does not get `ended`,
    /// and that one releases the resources of the open.
    [[nodiscard]] open_phase end() noexcept { return progress.end(); }

    // --- its session and tree

    /// Returns whether the open currently belongs to that session, or to that tree connection.
    /// Compares without the mutex.
    [[nodiscard]] bool is_of(const server::session& one) const noexcept {
        return session_.load(std::memory_order_acquire) == &one;
    }
    [[nodiscard]] bool is_of(const server::tree& one) const noexcept {
        return tree_seen_.load(std::memory_order_acquire) == &one;
    }
    [[nodiscard]] bool has_session() const noexcept {
        return session_.load(std::memory_order_acquire) != nullptr;
    }
    /// Returns the session; null while the client is gone, and after the end of the open.
    [[nodiscard]] std::shared_ptr<server::session> session() const noexcept;
    /// Attaches the open to a session, which has it in its table, on a channel: for
    /// session::admit(). Returns false if the open has ended or has a session. `lost` receives its
    /// timer and its count as an open without a client, for the caller to end.
    struct disconnect_state {
        std::optional<timer_queue::entry> end;
        quota_hold counted;
    };
    [[nodiscard]] bool attach(server::session& to, std::shared_ptr<server::tree> by,
                              const server::channel* on, disconnect_state& lost) noexcept;
    /// Detaches the open from its session, and returns that; null if it had none. The caller
    /// removes the open from the table of the session.
    [[nodiscard]] std::shared_ptr<server::session> detach() noexcept;
    /// Detaches the open from that session, if it belongs to it, and returns whether it did. A
    /// session does this with all its opens before it is destroyed.
    bool detach_from(const server::session& of) noexcept;
    /// Ends the open if it still belongs to that session (null: if its client is gone). Returns the
    /// previous phase; std::nullopt if it belongs to it no more, or has ended.
    [[nodiscard]] std::optional<open_phase> end_if_of(const server::session* of) noexcept;
    /// Returns the channel of the last reply to a CREATE of this open: a break of its oplock on
    /// another channel could overtake that reply. Only for comparison: the channel may be gone.
    [[nodiscard]] const server::channel* create_reply_channel() const noexcept {
        return create_reply_channel_.load(std::memory_order_relaxed);
    }
    void set_create_reply_channel(const server::channel* last) noexcept {
        // relaxed: a number, that orders nothing.
        create_reply_channel_.store(last, std::memory_order_relaxed);
    }

    // --- durability

    [[nodiscard]] std::optional<durability> durable() const;
    [[nodiscard]] bool is_durable() const noexcept;
    /// Returns whether it survives the server process. It does not change once it is true.
    [[nodiscard]] bool is_persistent() const noexcept {
        return is_persistent_.load(std::memory_order_acquire);  // pairs with make_persistent()
    }
    /// Returns whether it is persistent, and its client is gone: until the client is back, or its
    /// time has passed, no other CREATE of the file succeeds. Without the mutex.
    [[nodiscard]] bool is_in_grace() const noexcept {
        return is_persistent() and is_live() and not has_session();
    }
    /// Makes the open persistent. Returns false if it is not a live open of `by`, or is durable
    /// already.
    [[nodiscard]] bool make_persistent(const server::session& by, const durability& how) noexcept;
    /// Makes an open that an earlier process has recorded persistent and live, without its client.
    void begin_restored(const durability& how) noexcept;
    /// Makes the open durable, or changes its durability. Returns false if it is not a live open of
    /// `by`.
    template <class Change>
    [[nodiscard]] bool change_durability(const server::session& by, Change change) noexcept {
        const lock_guard held(mutex_);
        if (not is_live() or session_.load(std::memory_order_relaxed) != &by) return false;
        change(durable_);
        return true;
    }
    /// Detaches the open from `of` because its client is gone, and counts it as kept; the caller
    /// then starts the timer. Returns false, and changes nothing, if it is not a live and durable
    /// open of `of`.
    [[nodiscard]] bool begin_disconnect(const server::session& of, std::uint32_t number,
                                        quota_hold&& counted) noexcept;
    /// Records the timer of that disconnect. Returns false if the client has come back or the open
    /// has ended: then the caller cancels the timer.
    [[nodiscard]] bool set_disconnect_end(std::uint32_t number, const timer_queue::entry& end) noexcept;
    /// Returns the number of the next begin_disconnect(), which identifies its timer.
    [[nodiscard]] std::uint32_t next_disconnect() const noexcept;
    /// Ends the open if its client has been gone since that disconnect. Returns whether this call
    /// has ended it.
    [[nodiscard]] bool end_if_disconnected(std::uint32_t number) noexcept;
    /// Returns its timer and its count as an open without a client, for the caller to end.
    [[nodiscard]] disconnect_state take_disconnect_state() noexcept;

    // --- what its requests share

    /// See channel_sequence.
    [[nodiscard]] std::optional<channel_sequence::ticket> arrived(std::uint16_t number,
                                                                  bool is_replay) noexcept {
        const lock_guard held(mutex_);
        return sequence_.arrived(number, is_replay);
    }
    void finished(channel_sequence::ticket of) noexcept {
        const lock_guard held(mutex_);
        sequence_.finished(of);
    }
    void begin_sequence(std::uint16_t number) noexcept {
        const lock_guard held(mutex_);
        sequence_.begin_at(number);
    }
    void continue_sequence(std::uint16_t number) noexcept {
        const lock_guard held(mutex_);
        sequence_.continue_at(number);
    }
    /// Returns the times that SET_INFO has set or frozen through this open. They change only in a
    /// turn of the file.
    [[nodiscard]] sticky_times kept() const noexcept {
        // acquire: pairs with keep(). Most opens keep none. The file system orders a write and the
        // change of times: a write after the change finds here that the times are kept.
        if (not keeps_times_.load(std::memory_order_acquire)) return {};
        const lock_guard held(mutex_);
        return kept_;
    }
    void keep(const sticky_times& times) noexcept {
        const lock_guard held(mutex_);
        kept_ = times;
        keeps_times_.store(times.any(), std::memory_order_release);  // pairs with kept()
    }
    /// Returns the scan of a directory, which the first query begins; null once the open has ended.
    /// A query in progress holds the scan, too.
    [[nodiscard]] std::shared_ptr<directory_scan> scan(vfs::volume& volume);
    /// Returns another handle of the file, from which replies are sent that may outlive the open.
    /// The first of them duplicates the descriptor; null if there is no descriptor left.
    [[nodiscard]] std::shared_ptr<io::file_handle> pages(const io::file_handle& file);
    /// Releases the scan, which only an open that has not ended needs.
    void drop_scan() noexcept;

    std::atomic<std::uint64_t> position{0};  // FilePositionInformation: kept, not used
    /// Returns whether the next READ is to be compressed. Any thread: a hint, so that the order of
    /// calls does not matter.
    [[nodiscard]] bool takes_compression() noexcept {
        const unsigned skips = compression_skips_.load(std::memory_order_relaxed);
        if (skips != 0) compression_skips_.store(skips - 1, std::memory_order_relaxed);
        return skips == 0;
    }
    /// The data did not shrink: the next READs are not compressed. Any thread.
    void skip_compression() noexcept {
        compression_skips_.store(limits::compression_skips, std::memory_order_relaxed);
    }
    std::atomic<std::uint32_t> mode{0};  // FileModeInformation
    // The phase; and whether a replay of the CREATE returns this open, as long as it is unused
    // ([MS-SMB2] 3.3.1.10).
    open_progress progress;
    fifo_lock watch_begins;  // held while a request begins the watch
    // It has written, and its end is to be shown to the clients that cache its directory.
    std::atomic<bool> shows_end{false};

    // --- its file

    /// Returns the part that the mutex of the file guards, in a section of the file.
    [[nodiscard]] open_in_file& in_file(const file_section& held) noexcept {
        ENSURE(held.is_of(*file), "an open is changed in a section of its own file");
        return in_file_;
    }
    [[nodiscard]] const open_in_file& in_file(const file_section& held) const noexcept {
        ENSURE(held.is_of(*file), "an open is changed in a section of its own file");
        return in_file_;
    }
    /// Adds the open to the opens of `file`, or removes it. Complexity: linear in those.
    void enter_file(const file_section& held);
    void leave_file(const file_section& held) noexcept;

    // --- set by its CREATE

    quota_hold counted;  // among the opens
    wire::file_id id{};
    std::shared_ptr<server::share> through;
    // The tree of the snapshot that the file is in; null: it is not in one. Then `through` is the
    // share of this tree.
    std::shared_ptr<server::tree> past;
    // A file, directory or stream; or else a pipe.
    vfs::node_ptr node;
    std::shared_ptr<file_state> file;
    std::unique_ptr<named_pipe> pipe;
    wire::access_mask access = wire::access_mask::none;
    wire::share_access share_access = wire::share_access::none;
    wire::create_options create_options = wire::create_options::none;  // as requested
    wire::create_action action = wire::create_action::opened;          // that the CREATE took
    wire::guid client{};
    std::optional<wire::guid> create_guid;  // from the CREATE that opened it
    std::optional<app_instance> instance;   // the application that has it open
    // What a repetition of its CREATE must ask for.
    wire::create_disposition disposition = wire::create_disposition::open;
    wire::file_attributes attributes = wire::file_attributes::none;
    // The key that its client uses for the lease of its directory.
    std::optional<wire::lease_key> parent_key;

    /// The number of the host user at which its list of quotas continues. Atomic; relaxed, because
    /// it orders nothing: two requests at once have no order.
    std::atomic<std::uint64_t> next_quota{0};

private:
    friend class open_table;

    [[nodiscard]] bool is_disconnected(std::uint32_t number) const noexcept SLUICE_REQUIRES(mutex_);

    open_in_file in_file_;
    std::atomic<bool> keeps_times_{false};
    std::atomic<bool> is_persistent_{false};
    std::atomic<unsigned> compression_skips_{0};  // READs not compressed from now on
    std::atomic<const server::channel*> create_reply_channel_{nullptr};
    mutable ranked_mutex<lock_rank::open> mutex_;
    // Written under the mutex. The session takes its opens out before it is destroyed.
    std::atomic<server::session*> session_{nullptr};
    std::atomic<const server::tree*> tree_seen_{nullptr};
    std::shared_ptr<server::tree> tree_ SLUICE_GUARDED_BY(mutex_);
    std::optional<durability> durable_ SLUICE_GUARDED_BY(mutex_);  // null: ends with its connection
    quota_hold counted_kept_ SLUICE_GUARDED_BY(mutex_);            // while its client is gone
    channel_sequence sequence_ SLUICE_GUARDED_BY(mutex_);
    sticky_times kept_ SLUICE_GUARDED_BY(mutex_);
    std::shared_ptr<directory_scan> scan_ SLUICE_GUARDED_BY(mutex_);
    std::shared_ptr<io::file_handle> pages_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server

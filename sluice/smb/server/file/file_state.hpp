#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/shared_memory.hpp"
#include "sluice/smb/server/core/switch_point.hpp"
#include "sluice/smb/server/file/byte_range_locks.hpp"
#include "sluice/smb/server/file/open_protocol.hpp"
#include "sluice/smb/server/file/peer_claims.hpp"
#include "sluice/smb/server/file/set_change_times.hpp"
#include "sluice/smb/server/file/share_modes.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

class open;
class file_section;
class file_table;

/// The state that all opens of one file (or stream) share: the opens, their share modes, the locked
/// byte ranges, and whether the file is removed when the last of them closes.
///
/// Lives as long as an open, a lease, or a request that is about to become an open, holds it.
///
/// Invariants:
///   1. A stream has a `base`; a file has none.
///   2. An open that has asked for the removal keeps the file pending until
///      another open clears that.
///   3. No locks and no waiters are left when the last holder goes.
/// Monitor: any thread. One mutex guards a file and its streams, the part of its opens that is
/// `open_in_file`, and its leases. A file_section holds it, and is the argument of every
/// function that needs it.
class file_state : public std::enable_shared_from_this<file_state> {
public:
    /// `whole_file`: the state of the file to which a stream belongs; null for a file.
    file_state(file_table& table, const vfs::file_key& key,
               std::shared_ptr<file_state> whole_file = nullptr) noexcept;
    file_state(const file_state&) = delete;
    file_state& operator=(const file_state&) = delete;
    ~file_state();

    /// Returns the key. It changes when a stream is renamed, or the file becomes another inode.
    [[nodiscard]] inline vfs::file_key key(const file_section& held) const noexcept;
    [[nodiscard]] inline std::pmr::vector<open*>& opens(const file_section& held) noexcept;
    [[nodiscard]] inline byte_range_locks& locks(const file_section& held) noexcept;
    /// Returns the protocol by which CREATE, CLOSE and RENAME of the file exclude each other while
    /// they call the file system.
    [[nodiscard]] inline open_protocol& protocol(const file_section& held) noexcept;

    /// The order of changes of its attributes, streams, EAs, security descriptor and size: one at a
    /// time. A monitor of its own.
    fifo_lock changes;

    /// Adds an open that has joined to the list, or removes it from there.
    void add(const file_section& held, open& one);
    void remove(const file_section& held, open& one) noexcept;

    /// Adds or removes the event of a request that waits until caching of the file has changed, or
    /// an open has ended. Such a change sets all events.
    void add_caching_waiter(const file_section& held, one_shot_event<wire::nt_status>& waiting);
    void remove_caching_waiter(const file_section& held, one_shot_event<wire::nt_status>& waiting) noexcept;
    void wake_caching_waiters(const file_section& held) noexcept;

    /// Change times that clients have set; of all files. A monitor of its own.
    [[nodiscard]] set_change_times& change_times() noexcept;
    /// Stores the change time that a client has set for this file, if any, in its status. Locks.
    void show_change_time(vfs::metadata& status) noexcept;
    /// Sets the time that clients see as the change time, or returns it, if any; see
    /// set_change_times. Locks.
    void set_change_time(const set_change_times::shown_time& time);
    [[nodiscard]] std::optional<set_change_times::shown_time> shown_change_time() noexcept;

    /// Record the beginning and the end of a write through an open of the file. In between, no open
    /// is granted read caching.
    void begin_write(const file_section& held) noexcept;
    void end_write(const file_section& held) noexcept;
    /// The same for any other change by a client: of attributes, EAs, security, size or the
    /// complete content. Locks.
    void begin_change() noexcept;
    void end_change() noexcept;
    /// Returns whether a write or another change is in progress. Locks.
    [[nodiscard]] bool is_changing() noexcept;
    /// Returns how many writes and other changes have ended. A status is not current if the number
    /// has changed since the status was requested. Any thread, without the mutex.
    [[nodiscard]] std::uint32_t ended_changes() const noexcept {
        return ended_changes_.load(std::memory_order_seq_cst);  // pairs with count_ended_change()
    }
    /// Returns whether the status that a lookup has found may be outdated: since this exists, a
    /// client has changed the file, or is about to. See file_table::changed_files() for the time
    /// before.
    [[nodiscard]] bool may_have_changed(const file_section& held) const noexcept;

    /// Returns whether the file is removed when its last open ends. New opens are refused then,
    /// also by other servers.
    [[nodiscard]] bool is_delete_pending(const file_section& held) const noexcept;
    /// The same. Locks.
    [[nodiscard]] bool is_delete_pending() noexcept;
    /// Returns whether the file is removed because its own CREATE has failed; then `blocked` is
    /// queued until it is gone, or stays. Locks.
    [[nodiscard]] bool is_undone(waiter& blocked) noexcept;
    /// Returns whether new opens are refused because the file is going to be removed. Those of a
    /// file whose own CREATE has failed wait instead. Locks.
    [[nodiscard]] bool refuses_opens() noexcept;
    /// Marks the file for removal. `by` has the right to delete the file, and removes the name that
    /// it was opened by, even after it has ended: the open that ends last may belong to a read-only
    /// share, to another account, or to another name of the file.
    void set_delete_pending(const file_section& held, std::shared_ptr<open> by);
    /// Returns the removers, which the caller releases outside the section.
    [[nodiscard]] std::vector<std::shared_ptr<open>> clear_delete_pending(const file_section& held) noexcept;
    /// Ends a removal, as open_protocol::end_removal(). Other servers do not see the file as one
    /// that goes any more: its number may already be that of another file.
    void end_removal(const file_section& held, name_right& right, bool is_removed) noexcept;
    /// The last open to leave removes the file by the name of `by`, too.
    void add_remover(const file_section& held, std::shared_ptr<open> by);
    [[nodiscard]] inline const std::vector<std::shared_ptr<open>>& removers(
        const file_section& held) const noexcept;
    /// The opens by which to remove the file, after the last has ended: one for
    /// each that asked for it.
    [[nodiscard]] std::vector<std::shared_ptr<open>> take_removers(const file_section& held) noexcept;

    /// Removes a waiter from the protocol. Locks.
    void forget(waiter& one) noexcept;

    /// Returns whether a READ or WRITE may conflict with a byte-range lock: see
    /// byte_range_locks::has_any(). Any thread, without the mutex.
    [[nodiscard]] bool has_any_lock() const noexcept { return locks_.has_any(); }
    /// Returns whether an open may read, or write, a range. Locks, if there may be a conflict.
    [[nodiscard]] bool allows_read(const open& who, byte_range_locks::range where) noexcept;
    [[nodiscard]] bool allows_write(const open& who, byte_range_locks::range where) noexcept;

    /// Returns whether it is shared with other servers, which peers() shows. Any
    /// thread, without the mutex.
    [[nodiscard]] bool has_peers() const noexcept { return has_peers_.load(std::memory_order_acquire); }
    /// Returns the file's share-mode lock bytes among other servers; null if the server shares
    /// locks with no others. They publish the locked byte ranges, too.
    [[nodiscard]] share_mode_lock_bytes* peers(const file_section& held) noexcept;
    /// The same; created if it does not exist yet.
    [[nodiscard]] share_mode_lock_bytes& peers_among(const file_section& held, peer_servers& all);

    /// The key that the client of the last open to leave uses for the lease of the directory. For
    /// the removal of the file.
    [[nodiscard]] inline std::optional<wire::lease_key>& last_closer_parent(
        const file_section& held) noexcept;

    /// How many of its opens are persistent.
    [[nodiscard]] inline std::uint32_t& persistent_opens(const file_section& held) noexcept;
    /// How many persistent opens of an earlier server could not be restored for a cause that may
    /// pass. Until their time ends, no client opens the file.
    [[nodiscard]] inline std::uint32_t& unrestored_opens(const file_section& held) noexcept;

    /// Whether a task retries, from time to time, the locks that wait for those of other servers.
    [[nodiscard]] inline bool& retries_locks(const file_section& held) noexcept;

    /// The file of a stream, which may have no open of its own; null for a file.
    const std::shared_ptr<file_state> base;
    /// Returns the image that contains the file: file_key::image, which never changes.
    const std::uint64_t image;

private:
    friend class file_section;
    friend class file_table;

    void record_change() noexcept;
    void count_ended_change() noexcept {
        ended_changes_.fetch_add(1, std::memory_order_seq_cst);  // pairs with ended_changes()
    }

    file_table& table_;
    ranked_mutex<lock_rank::file> own_mutex_;  // used by a file, not by a stream
    ranked_mutex<lock_rank::file>& mutex_;     // that of the file; guards the rest
    vfs::file_key key_;
    open_protocol protocol_;
    std::optional<share_mode_lock_bytes> peers_;
    std::atomic<bool> has_peers_{false};
    peer_claim goes_;
    std::pmr::vector<open*> opens_;
    byte_range_locks locks_;
    std::vector<one_shot_event<wire::nt_status>*> waiters_;
    // They hold this state; empty once the removal has taken them.
    std::vector<std::shared_ptr<open>> removers_;
    std::uint32_t pending_writes_ = 0;
    std::uint32_t pending_changes_ = 0;
    std::atomic<std::uint32_t> ended_changes_{0};
    bool retries_locks_ = false;
    std::uint32_t persistent_opens_ = 0;
    std::uint32_t unrestored_opens_ = 0;
    std::optional<wire::lease_key> last_closer_parent_;
};

/// A critical section of a file and its streams: holds their mutex while it exists. In it, the
/// thread locks no session, open, or other file, sends nothing and calls no file system.
///
/// Loop-owned, on the stack. The file outlives it.
class file_section {
public:
    // The analysis cannot follow a mutex that a stream has by reference.
    explicit file_section(file_state& of) noexcept SLUICE_NO_THREAD_SAFETY_ANALYSIS : mutex_(of.mutex_) {
        mutex_.lock();
    }
    file_section(const file_section&) = delete;
    file_section& operator=(const file_section&) = delete;
    ~file_section() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
        mutex_.unlock();
        switch_point::mark();
    }

    /// Returns whether this is the section of that file, or of the file of that stream.
    [[nodiscard]] bool is_of(const file_state& one) const noexcept { return &mutex_ == &one.mutex_; }

private:
    ranked_mutex<lock_rank::file>& mutex_;
};

inline vfs::file_key file_state::key(const file_section& held) const noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return key_;
}
inline std::pmr::vector<open*>& file_state::opens(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return opens_;
}
inline byte_range_locks& file_state::locks(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return locks_;
}
inline open_protocol& file_state::protocol(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return protocol_;
}
inline const std::vector<std::shared_ptr<open>>& file_state::removers(
    const file_section& held) const noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return removers_;
}
inline std::optional<wire::lease_key>& file_state::last_closer_parent(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return last_closer_parent_;
}
inline std::uint32_t& file_state::persistent_opens(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return persistent_opens_;
}
inline std::uint32_t& file_state::unrestored_opens(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return unrestored_opens_;
}
inline bool& file_state::retries_locks(const file_section& held) noexcept {
    ENSURE(held.is_of(*this), "a file is used in a section of its own");
    return retries_locks_;
}

/// The open files of a server, by key: every share that reaches a file finds the same state,
/// before and after a reload.
///
/// Invariants:
///   1. A file and its streams are in the same shard, so that one mutex guards them.
///   2. An entry leads to the state that was made for its key last. A state whose last owner is
///   destroying it is not found any more; it removes only an entry that leads to itself.
///   3. The key of a state is that of the entry that leads to it. A stream stays a stream
///   when its key changes.
///   4. The end of a change while the file has no opens, and the loss of the last open of a file
///   that may have changed, are counted in changed_files() before the state can be forgotten.
/// Monitor: any thread; the mutex of each shard guards its entries. What it returns holds the
/// states, which are monitors themselves. Lifetime: outlives its states.
class file_table {
public:
    file_table() noexcept = default;
    file_table(const file_table&) = delete;
    file_table& operator=(const file_table&) = delete;

    /// Returns the state of a file; creates it if there is none.
    [[nodiscard]] std::shared_ptr<file_state> of(const vfs::file_key& key);
    /// Returns the state of a file, or null if there is none.
    [[nodiscard]] std::shared_ptr<file_state> find(const vfs::file_key& key) noexcept;
    /// Returns the open named streams of a file; `file` is the key of the file itself.
    /// Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<file_state>> streams_of(const vfs::file_key& file) const;
    /// Returns those that are in the section of this state of the file. After the removal of one of
    /// several names, or of the file before this one with its number, some may belong to a state
    /// that is forgotten. Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<file_state>> streams_of(const file_section& held,
                                                                      const file_state& file) const;
    /// Returns whether any stream of `file` has opens. In a section of that file.
    [[nodiscard]] bool has_open_streams(const file_section& held, file_state& file) const noexcept;
    /// Changes the key of a stream that was renamed, or of an open file that has become another
    /// inode. If another state has this key, it belongs to a stream that was replaced: it is no
    /// longer found, and exists until its last owner releases it. The caller excludes other changes
    /// of this key by a rename mark, or by holding the rename barrier exclusively. For a moment,
    /// the state may be found under both keys.
    void change_key(const file_section& held, file_state& of, const vfs::file_key& key);
    /// Forgets the state of a file without opens that is about to be removed. Requests may still
    /// hold the state, but the next file, which may get the same key, gets another one.
    void forget(const file_section& held, file_state& removed) noexcept;
    /// Complexity: constant in the files.
    [[nodiscard]] std::size_t size() const noexcept;

    /// Counts the files that clients have changed and that have no opens left. While it is the same
    /// as before a lookup, and the file's own state says not may_have_changed(), the status that
    /// the lookup has found is current.
    [[nodiscard]] std::uint64_t changed_files() const noexcept {
        return changed_files_.load(std::memory_order_seq_cst);  // pairs with count_changed_file()
    }

    /// Change times that clients have set of open files.
    set_change_times change_times;

private:
    friend class file_state;

    struct entry {
        file_state* state = nullptr;  // to compare with only
        std::weak_ptr<file_state> owner;
    };
    static constexpr std::size_t shards = 64;
    static constexpr std::size_t kept_bytes_max = std::size_t{256} << 10;

    struct alignas(64) shard {
        shared_memory memory{kept_bytes_max};  // for the states and their contents; outlives both
        mutable ranked_mutex<lock_rank::leaf> mutex;
        recycled_memory nodes SLUICE_GUARDED_BY(mutex){kept_bytes_max};
        // By the key of the file, those of its streams.
        std::unordered_map<vfs::file_key, std::vector<entry>> streams SLUICE_GUARDED_BY(mutex);
        std::pmr::unordered_map<vfs::file_key, entry> files SLUICE_GUARDED_BY(mutex){&nodes};
    };
    [[nodiscard]] static std::size_t number_of(const vfs::file_key& key) noexcept {
        // The high bits, because the low ones choose the bucket in the shard.
        return std::hash<vfs::file_key>{}(key.whole_file()) * 0x9e37'79b9'7f4a'7c15ULL >> 58;
    }
    [[nodiscard]] shard& shard_of(const vfs::file_key& key) noexcept { return shards_[number_of(key)]; }
    [[nodiscard]] const shard& shard_of(const vfs::file_key& key) const noexcept {
        return shards_[number_of(key)];
    }

    [[nodiscard]] static std::shared_ptr<file_state> find_in(const shard& in,
                                                             const vfs::file_key& key) noexcept
        SLUICE_REQUIRES(in.mutex);
    [[nodiscard]] std::shared_ptr<file_state> of_in(shard& in, const vfs::file_key& key)
        SLUICE_REQUIRES(in.mutex);
    void count_changed_file() noexcept {
        changed_files_.fetch_add(1, std::memory_order_seq_cst);  // pairs with changed_files()
    }
    static void add_to(shard& in, file_state& one, const vfs::file_key& key) SLUICE_REQUIRES(in.mutex);
    // Returns whether the entry of `key` has led to `one`.
    static bool remove_from(shard& in, const file_state& one, const vfs::file_key& key) noexcept
        SLUICE_REQUIRES(in.mutex);

    std::atomic<std::uint64_t> changed_files_{0};
    std::array<shard, shards> shards_;
};

}  // namespace sluice::smb::server

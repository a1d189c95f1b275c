#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/file/byte_range_locks.hpp"
#include "sluice/smb/server/file/open_protocol.hpp"
#include "sluice/smb/server/file/peer_claims.hpp"
#include "sluice/smb/server/file/set_change_times.hpp"
#include "sluice/smb/server/file/share_modes.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

class open;
class file_table;

/// What all opens of one file (or stream) share: who they are, what they allow each other, which bytes are
/// locked, whether the file is to be removed when the last of them closes.
///
/// Lives as long as an open, or a request that is about to become one, holds it.
/// Thread safety: under the server's latch.
class file_state : public std::enable_shared_from_this<file_state> {
public:
    /// `whole_file`: the state of the file to which a stream belongs; null for a file.
    file_state(file_table& table, const vfs::file_key& key,
               std::shared_ptr<file_state> whole_file = nullptr) noexcept;
    file_state(const file_state&) = delete;
    file_state& operator=(const file_state&) = delete;
    ~file_state();

    [[nodiscard]] const vfs::file_key& key() const noexcept { return key_; }
    [[nodiscard]] std::pmr::vector<open*>& opens() noexcept { return opens_; }
    [[nodiscard]] const std::pmr::vector<open*>& opens() const noexcept { return opens_; }
    [[nodiscard]] byte_range_locks& locks() noexcept { return locks_; }

    /// The order of changes of its attributes, streams, EAs, security descriptor and size: one at a time.
    fifo_lock changes;

    /// By which its opens, closes and renames exclude each other while they call the file system.
    [[nodiscard]] open_protocol& protocol() noexcept { return protocol_; }

    /// Adds an open, which has joined, to the list; remove() takes it out.
    void add(open& one);
    void remove(open& one) noexcept;

    /// Who waits until caching of the file has changed, or an open has gone; sets all of them.
    [[nodiscard]] std::vector<event<wire::nt_status>*>& caching_waiters() noexcept { return waiters_; }
    void wake_caching_waiters() noexcept;

    /// Change times that clients have set; of all files.
    [[nodiscard]] set_change_times& change_times() noexcept;

    /// Writes through any open of it that have begun and not ended: counted by pending_write.
    std::uint32_t pending_writes = 0;
    /// Other changes that have begun and not ended: counted by change_turn.
    std::uint32_t pending_changes = 0;
    /// How many writes and other changes have ended.
    std::uint32_t ended_changes = 0;
    /// Whether a change of the file may be in progress.
    [[nodiscard]] bool is_changing() const noexcept { return pending_writes != 0 or pending_changes != 0; }

    /// Whether the file is removed when its last open ends: new opens are refused then, also by other
    /// servers.
    [[nodiscard]] bool is_delete_pending() const noexcept {
        return protocol_.phase() == delete_phase::delete_pending or
               protocol_.phase() == delete_phase::removing;
    }
    /// `by` has the right to delete the file, and removes the name that it was opened by, even after it has
    /// ended: the open that ends last may belong to a read-only share, to another account, or to another name
    /// of the file.
    void set_delete_pending(std::shared_ptr<open> by);
    void clear_delete_pending() noexcept;
    /// The last open to leave removes the file by the name of `by`, too.
    void add_remover(std::shared_ptr<open> by);
    [[nodiscard]] const std::vector<std::shared_ptr<open>>& removers() const noexcept { return removers_; }
    /// The opens by which to remove the file, after the last has ended: one for each that asked for it.
    [[nodiscard]] std::vector<std::shared_ptr<open>> take_removers() noexcept {
        return std::exchange(removers_, {});
    }

    /// Where the file stands with other servers of it; null if there are none to be minded. It tells them of
    /// the byte ranges that are locked, too.
    [[nodiscard]] peer_signs* peers() noexcept { return peers_ ? &*peers_ : nullptr; }
    /// The same, begun if it has not been.
    [[nodiscard]] peer_signs& peers_among(peer_servers& all);

    /// Somebody tries locks that wait for other servers' again from time to time.
    bool retries_locks = false;

    /// The file of a stream, which may have no open of its own; null for a file.
    const std::shared_ptr<file_state> base;

private:
    friend class file_table;
    file_table& table_;
    vfs::file_key key_;
    open_protocol protocol_;
    std::optional<peer_signs> peers_;
    peer_claim goes_;
    std::pmr::vector<open*> opens_;
    byte_range_locks locks_;
    std::vector<event<wire::nt_status>*> waiters_;
    std::vector<std::shared_ptr<open>> removers_;  // they hold this; none once the file has no opens
};

/// The open files of a server, by key: every share that reaches a file finds the same state, before and after
/// a reload. Outlives its states. Thread safety: the caller holds the server's latch.
class file_table {
public:
    file_table() noexcept = default;
    file_table(const file_table&) = delete;
    file_table& operator=(const file_table&) = delete;

    /// The state of a file, made if nobody has it open.
    [[nodiscard]] std::shared_ptr<file_state> of(const vfs::file_key& key);
    /// The same, or null if nobody has it open.
    [[nodiscard]] std::shared_ptr<file_state> find(const vfs::file_key& key) noexcept;
    /// All that are open, for the few who must look at each. Complexity: linear. Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<file_state>> all();
    /// The named streams of a file that are open; `file` is the key of the file itself.
    [[nodiscard]] const std::vector<file_state*>& streams_of(const vfs::file_key& file) const noexcept;
    /// Whether any stream of `file` has opens.
    [[nodiscard]] bool has_open_streams(const vfs::file_key& file) const noexcept;
    /// A stream has another name, or an open file has become another inode, and so another key. Another state
    /// that had this key is of a stream that was replaced: it is not found any more, and lasts as long as
    /// those who hold it.
    void change_key(file_state& of, const vfs::file_key& key);
    /// The file is about to be removed, and has no opens: requests may still hold its state, but it is not
    /// that of the next file, which may get the same key.
    void forget(file_state& removed) noexcept;
    [[nodiscard]] std::size_t size() const noexcept { return files_.size(); }

    /// Change times that clients have set of open files.
    set_change_times change_times;

private:
    friend class file_state;
    void note_stream(file_state& one);
    void forget_stream(file_state& one) noexcept;

    recycled_memory memory_;  // of the states and what is in them; outlives both
    // By the key of the file, those of its streams.
    std::unordered_map<vfs::file_key, std::vector<file_state*>> streams_;
    std::pmr::unordered_map<vfs::file_key, std::weak_ptr<file_state>> files_{&memory_};
};

}  // namespace sluice::smb::server

#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/waiter_list.hpp"
#include "sluice/smb/server/file/share_entries.hpp"

namespace sluice::smb::server {

class open_protocol;

/// The share-mode entry of one open, or of a CREATE that is not complete. Moves from
/// the CREATE to its open.
///
/// Lifetime: leaves its file before it is destroyed (ENSURE). Thread safety: the caller holds
/// the mutex of the file.
class share_entry {
public:
    share_entry() noexcept = default;
    share_entry(share_entry&& from) noexcept { *this = std::move(from); }
    share_entry& operator=(share_entry&& from) noexcept {
        ENSURE(at_ == nullptr, "an entry that counts is not overwritten");
        at_ = std::exchange(from.at_, nullptr);
        state_ = from.state_;
        mode_ = from.mode_;
        return *this;
    }
    ~share_entry() { ENSURE(at_ == nullptr, "an entry leaves its file before it is destroyed"); }

    /// Returns whether it counts in a file. state() is meaningful only then.
    [[nodiscard]] bool is_inside() const noexcept { return at_ != nullptr; }
    [[nodiscard]] entry_state state() const noexcept { return state_; }

private:
    friend class open_protocol;
    open_protocol* at_ = nullptr;
    entry_state state_ = entry_state::joining;
    sharing mode_;
};

/// The right to change a name of a file: a rename mark, or the right to remove the file. One holder
/// at a time, in order of arrival.
///
/// Lifetime: `woken` outlives it. It is neither queued nor held when it is destroyed (ENSURE).
/// Thread safety: as share_entry.
class name_right {
public:
    explicit name_right(one_shot_event<wire::nt_status>& woken) noexcept : woken_(woken) {}
    ~name_right() { ENSURE(at_ == nullptr, "a right to a name is released before it is destroyed"); }

    /// Returns whether it has been granted and not released: what a woken waiter asks.
    [[nodiscard]] bool is_held() const noexcept { return is_held_; }

private:
    friend class open_protocol;
    one_shot_event<wire::nt_status>& woken_;
    open_protocol* at_ = nullptr;  // while queued or held; the file or stream to remove, or to mark
    bool removes_ = false;
    bool is_held_ = false;
    list_hook<name_right> link_;  // while queued
};

/// A request that checks whether a directory is empty, in order to delete it.
///
/// Lifetime: the check has ended before it is destroyed (ENSURE). Thread safety: as share_entry.
class directory_check {
public:
    directory_check() noexcept = default;
    directory_check(const directory_check&) = delete;
    directory_check& operator=(const directory_check&) = delete;
    ~directory_check() { ENSURE(at_ == nullptr, "a check ends before it is destroyed"); }

private:
    friend class open_protocol;
    open_protocol* at_ = nullptr;
};

/// Whether a file or stream can be opened and removed.
enum class delete_phase : std::uint8_t {
    open,
    checking,        ///< a directory that is searched for entries, to be deleted if it has none
    delete_pending,  ///< removed when its last entry leaves
    removing,        ///< a call removes it
    removed,         ///< final
};

/// The protocol by which CREATE, CLOSE and RENAME of one file, or of one named stream of it,
/// exclude each other while they call the file system: share-mode entries, delete phase, rename
/// mark, directory changes.
/// Invariants and wake-ups: docs/algorithms/open_protocol.md.
///
/// It has no mutex: each method is one critical section of the file's monitor, to which the streams
/// belong as well; none suspends or calls the file system. Thread safety: the caller holds that
/// mutex. Allocates: nothing. Complexity: constant, and linear in the waiters that are woken.
class open_protocol {
public:
    /// Creates the protocol of a file, or of a stream of `file`, which outlives it.
    explicit open_protocol(open_protocol* file = nullptr) noexcept : file_(file == nullptr ? *this : *file) {}
    open_protocol(const open_protocol&) = delete;
    open_protocol& operator=(const open_protocol&) = delete;
    /// No entry, right or waiter is left.
    ~open_protocol();

    enum class verdict : std::uint8_t {
        granted,
        blocked,            ///< the waiter is queued: release everything, wait, start again
        gone,               ///< removed: look the name up again
        delete_pending,     ///< STATUS_DELETE_PENDING
        sharing_violation,  ///< STATUS_SHARING_VIOLATION, unless a lease break makes an open close
    };
    /// Returns what join() would return, without a change.
    [[nodiscard]] verdict check(const sharing& wanted) const noexcept;
    /// Returns with which opens of this file an open of a stream of it would conflict: with those
    /// that may delete the file, if it denies that.
    [[nodiscard]] share_entries::conflict conflict_with_stream(const sharing& wanted) const noexcept;
    /// Adds `fresh`, which is outside, as joining if it is granted; queues `blocked` if it is
    /// blocked.
    [[nodiscard]] verdict join(share_entry& fresh, const sharing& wanted, waiter& blocked) noexcept;
    /// A joining entry becomes an open. `mode` is what it has now: what it wanted, or less.
    void commit(share_entry& joined, const sharing& mode) noexcept;
    /// The open has been closed, but changes of the file through it are in flight: leave() follows.
    void end(share_entry& committed) noexcept;

    /// The removals that the caller of leave() begins with begin_removal(): first the
    /// stream, then the file.
    struct removal_duty {
        bool of_this = false;  ///< the file or stream of the entry
        bool of_file = false;  ///< the file of a stream, whose removal waited for its streams
    };
    /// The entry does not count any more, in whatever state it was. Nothing
    /// happens if it is outside.
    [[nodiscard]] removal_duty leave(share_entry& leaving) noexcept;
    /// As leave(), for a CREATE that has created the file, and failed: the file is removed with it
    /// if no other entry has joined. Until end_removal(), joins are blocked, not refused.
    [[nodiscard]] removal_duty leave_created(share_entry& leaving) noexcept;

    /// The file or stream is deleted when its last entry leaves. The caller has an entry.
    void set_delete_pending() noexcept;
    /// It is not, unless it is being removed already.
    void clear_delete_pending() noexcept;
    [[nodiscard]] delete_phase phase() const noexcept { return phase_; }
    /// Returns whether the file is removed because its CREATE has failed; then `blocked` is queued
    /// until it is gone, or stays.
    [[nodiscard]] bool is_undone(waiter& blocked) noexcept {
        const bool waits = is_pending() and is_undone_;
        if (waits) file_.joins_.add(blocked);
        return waits;
    }
    /// Whether joins are refused because the file is going to be removed.
    [[nodiscard]] bool refuses_joins() const noexcept { return is_pending() and not is_undone_; }

    /// Begins the removal that leave() has made the caller's duty: waits for the file's rename
    /// marks. Returns whether `right` is held; else it is queued, and `woken` is set once it is.
    /// When it is held, the phase is `removing`; or `removed`, if a rename has replaced the file:
    /// then there is nothing to remove.
    [[nodiscard]] bool begin_removal(name_right& right) noexcept;
    /// The call has ended. If it has removed the file, the caller has raised the removal
    /// count, and the file table forgets the file in the same critical section. Also ends a
    /// removal that is queued.
    void end_removal(name_right& right, bool is_removed) noexcept;

    /// Marks the file, whose name a rename will change or replace. Returns whether `right` is held;
    /// else it is queued until joining entries, other marks and a removal have ended. A waiter that
    /// holds other marks has those of smaller keys only. The file may be `removed` when the mark is
    /// held: look the names up again.
    [[nodiscard]] bool mark(name_right& right) noexcept;
    /// Releases the mark, or leaves the queue; nothing happens if it is in neither. `was_replaced`:
    /// the rename has replaced this file. Returns whether it is removed now; then the caller has
    /// raised the removal count, and the file table forgets the file in the same critical section.
    bool unmark(name_right& right, bool was_replaced = false) noexcept;

    /// Begins to add a name to this directory: `granted`, `blocked`, `gone` or `delete_pending`.
    [[nodiscard]] verdict begin_directory_change(waiter& blocked) noexcept;
    void end_directory_change() noexcept;
    /// Begins to check whether this directory is empty. `granted`: list it now. `blocked`: wait,
    /// and call begin_check() again, or end_check(). `delete_pending`: an open has set it. The
    /// caller has an entry.
    [[nodiscard]] verdict begin_check(directory_check& check, waiter& blocked) noexcept;
    /// Ends the check, if it has begun: the directory is deleted if it is empty, or stays. An open
    /// that has set the phase to `delete_pending` since then prevails. Returns false if that has
    /// ended it, or it had not begun.
    bool end_check(directory_check& check, bool is_empty) noexcept;

    /// A waiter does not wait any more.
    void forget(waiter& one) noexcept { one.leave(); }

    [[nodiscard]] const share_entries& entries() const noexcept { return entries_; }
    /// The entries of all named streams of this file.
    [[nodiscard]] const share_entries& stream_entries() const noexcept { return stream_entries_; }
    [[nodiscard]] bool is_marked() const noexcept { return file_.marks_ != 0; }
    /// Returns a number that changes with each rename of the file, or onto it. std::nullopt while
    /// one is in progress or waits, and after one has replaced the file: it may have no name then.
    [[nodiscard]] std::optional<std::uint32_t> name_version() const noexcept {
        if (is_marked() or file_.was_replaced_) return std::nullopt;
        return file_.marks_so_far_;
    }
    /// Returns whether no right to a name of the file is held or queued: begin_removal()
    /// would be granted at once.
    [[nodiscard]] bool are_names_free() const noexcept {
        return file_.holder_ == nullptr and file_.rights_.front() == nullptr;
    }

private:
    [[nodiscard]] bool is_stream() const noexcept { return &file_ != this; }
    [[nodiscard]] bool is_pending() const noexcept;
    [[nodiscard]] verdict while_pending() const noexcept {
        return is_undone_ ? verdict::blocked : verdict::delete_pending;
    }
    [[nodiscard]] bool is_joining_any() const noexcept;
    [[nodiscard]] removal_duty duty_of_last() const noexcept;
    [[nodiscard]] share_entries::conflict conflict_beyond(const sharing& wanted) const noexcept;
    void add(share_entry& entry, entry_state state, const sharing& mode) noexcept;
    void remove(share_entry& entry) noexcept;
    void set_phase(delete_phase next) noexcept;
    // Called for files, not for streams.
    [[nodiscard]] bool queue(name_right& right, open_protocol& of, bool removes) noexcept;
    void release(name_right& right) noexcept;
    void grant_next() noexcept;
    void wake_joins() noexcept;

    open_protocol& file_;  // itself, unless this is a stream
    share_entries entries_;
    delete_phase phase_ = delete_phase::open;
    bool is_undone_ = false;  // pending, since its CREATE has failed

    // Used by files, not by streams.
    share_entries stream_entries_;
    std::uint32_t directory_changes_ = 0;
    std::uint32_t marks_ = 0;             // held and queued: they block joins
    std::uint32_t marks_so_far_ = 0;      // may overflow
    bool was_replaced_ = false;           // by a rename
    directory_check* checker_ = nullptr;  // exactly in the phase `checking`
    name_right* holder_ = nullptr;
    intrusive_list<name_right, &name_right::link_> rights_;  // queued
    waiter_list joins_;
    waiter_list directory_waiters_;
};

}  // namespace sluice::smb::server

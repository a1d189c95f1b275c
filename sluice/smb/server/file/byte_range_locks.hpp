#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/file/lock_sequences.hpp"
#include "sluice/smb/server/file/peer_servers.hpp"
#include "sluice/smb/server/report/snapshot.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/sync/range_lock.hpp"

namespace sluice::smb::server {

class open;

/// The locked byte ranges of a file, and their owners ([MS-FSA] 2.1.4.10, 2.1.5.8; [MS-SMB2]
/// 3.3.5.14).
///
/// Offsets and lengths use all 64 bits. A range of no bytes lies between two bytes: it conflicts
/// with a range that covers both of them, never with another empty range. Exclusive locks conflict
/// with every overlapping lock, also of the same open. Shared locks conflict with the exclusive
/// locks of other opens: an open may stack them on its own. Only held locks conflict with others,
/// never waiting ones, as in the specification, in Windows and in Samba.
///
/// Where other servers have the file, too, each shows the others, as one, what its opens have
/// locked: for each byte the strongest lock there is. Locks of no bytes are not among it.
///
/// Invariants:
///   1. `held_count_` is the number of locks of all opens, each of which is held in `ranges_`.
///   2. `waiting` of an open is the number of its entries in `waiters_`.
///
/// Complexity: O(log n) expected in the locks of the file, plus those that overlap, where
/// nothing else is said; a release costs that for each waiter for part of the range, and a short
/// check of the others.
/// Allocates: a node for each lock. Thread safety: under the mutex of its file,
/// except for has_any().
class byte_range_locks {
public:
    struct range {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;  // offset + length <= 2^64, see is_lockable()
    };
    struct lock {
        const open* owner;
        range where;
        bool is_exclusive;
    };
    /// The LockSequenceIndex and LockSequenceNumber of a LOCK, and where they are recorded with the
    /// grant; the default: nowhere.
    struct sequence {
        lock_sequences* in = nullptr;
        std::uint32_t index = 0;
        std::uint8_t number = 0;
    };
    /// A lock that a request waits for. Lives in that request.
    struct waiter {
        lock wanted;
        one_shot_event<wire::nt_status>* granted;
        sequence numbered{};
        bool is_held = false;  // it has been granted, whatever else has set the event
    };

    /// Returns whether a range does not reach past the last of 2^64 bytes.
    [[nodiscard]] static constexpr bool is_lockable(range where) noexcept {
        return sync::byte_range::of({.offset = where.offset, .length = where.length}).has_value();
    }

    /// Coordinates the locks with other servers from now on, through `others`, which outlives this.
    /// Nothing is locked yet.
    void coordinate_with(peer_file& others) noexcept {
        peers_ = &others;
        publish();
    }

    /// Acquires the lock if there is no conflict; otherwise returns false.
    [[nodiscard]] bool try_lock(const lock& wanted);
    /// Acquires all of them, or returns false and acquires none. They can conflict with each other
    /// like any others.
    [[nodiscard]] bool try_lock_all(std::span<const lock> wanted);
    /// Grants `waiting`, in the order of arrival, when nothing conflicts with it any more. Its
    /// event is set at most once; forget() removes it in either case.
    void enqueue(waiter& waiting);
    void forget(waiter& waiting) noexcept;
    /// Releases one lock of exactly that range and owner, an exclusive one first. Returns false if
    /// there is none.
    [[nodiscard]] bool unlock(const open& owner, range where) noexcept;
    /// Releases all locks of an open, and ends its waiting requests with RANGE_NOT_LOCKED.
    void release_all(const open& owner) noexcept;

    /// Returns whether `who` may read (or write) the range. It may not if another open holds an
    /// exclusive lock (or any lock) there. It may not write to its own shared locks either. Empty
    /// ranges are always allowed.
    [[nodiscard]] bool allows_read(const open& who, range where) noexcept;
    [[nodiscard]] bool allows_write(const open& who, range where) noexcept;

    /// Grants the waiting locks that no longer conflict: other servers do not report their unlocks.
    void retry_waiters() noexcept { serve_waiters(sync::byte_range::whole()); }
    /// From now on, late_grants() names the owners of locks that were granted after a wait.
    void note_late_grants() noexcept { notes_late_grants_ = true; }
    /// Returns them, each once for each lock, and forgets them.
    [[nodiscard]] std::vector<const open*> take_late_grants() noexcept {
        return std::exchange(late_grants_, {});
    }
    [[nodiscard]] bool has_late_grants() const noexcept { return not late_grants_.empty(); }
    [[nodiscard]] bool has_waiters() const noexcept { return not waiters_.empty(); }

    /// Returns whether a READ or WRITE may conflict: a lock is held, or other servers may have
    /// some. Any thread, without a mutex: a transfer may end after a lock was granted that
    /// began after this check.
    [[nodiscard]] bool has_any() const noexcept { return has_any_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_empty() const noexcept { return held_count_ == 0 and waiters_.empty(); }
    /// Returns how many locks an open has, and how many with those it waits for. Complexity:
    /// constant, expected.
    [[nodiscard]] std::size_t held_by(const open& owner) const noexcept;
    [[nodiscard]] std::size_t claims_of(const open& owner) const noexcept;
    /// Calls `visit` with each lock of an open, by offset.
    template <class Visit>
    void for_each_of(const open& owner, Visit visit) const {
        const auto of = opens_.find(&owner);
        if (of == opens_.end()) return;
        for (const held_lock& held : of->second.held)
            visit(locked_range{
                .offset = held.at.offset, .length = held.at.length, .is_exclusive = not held.at.is_shared});
    }
    /// Returns the first locks of an open by offset, `count_max` at most. Complexity: linear in
    /// those.
    [[nodiscard]] std::vector<locked_range> first_of(const open& owner, std::size_t count_max) const;

private:
    // Distinguishes the locks of an open. If two have the same range, the exclusive one sorts
    // first.
    struct place {
        std::uint64_t offset;
        std::uint64_t length;
        bool is_shared;
        [[nodiscard]] friend auto operator<=>(const place&, const place&) noexcept = default;
    };
    struct held_lock {
        place at;
        sync::range_guard guard;
    };
    struct by_place {
        using is_transparent = void;
        [[nodiscard]] static const place& of(const held_lock& held) noexcept { return held.at; }
        [[nodiscard]] static const place& of(const place& at) noexcept { return at; }
        [[nodiscard]] bool operator()(const auto& a, const auto& b) const noexcept { return of(a) < of(b); }
    };
    /// Stays until the open is closed: it will lock again.
    struct locks_of_open {
        std::multiset<held_lock, by_place> held;
        std::size_t waiting = 0;
    };

    [[nodiscard]] static sync::lock_args args_of(const lock& wanted) noexcept;
    void keep(const lock& taken, sync::range_guard&& guard);
    void drop(const lock& taken) noexcept;
    [[nodiscard]] bool publish_to_peers(const sync::byte_range& where) noexcept;
    // Called after each change of `held_count_` or `peers_`. release: pairs with has_any().
    void publish() noexcept {
        has_any_.store(held_count_ != 0 or peers_ != nullptr, std::memory_order_release);
    }
    void serve_waiters(const sync::byte_range& freed) noexcept;

    // First: outlives the guards. Not in buckets, because every READ and WRITE searches for
    // conflicting locks. That is one search of a set, but with buckets a scan of all of them for
    // ranges longer than a few.
    sync::range_lock ranges_{{.spreads = false}};
    std::unordered_map<const open*, locks_of_open> opens_;
    std::size_t held_count_ = 0;
    std::atomic<bool> has_any_{false};
    std::vector<waiter*> waiters_;
    peer_file* peers_ = nullptr;
    bool notes_late_grants_ = false;
    std::vector<const open*> late_grants_;
};

}  // namespace sluice::smb::server

#pragma once

#include <cstdint>
#include <vector>

#include "sluice/smb/server/event.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

class open;

/// Which bytes of a file are locked, and by whom ([MS-FSA] 2.1.4.10, 2.1.5.8; [MS-SMB2] 3.3.5.14).
///
/// Offsets and lengths use all 64 bits. A range of no bytes lies between two: it conflicts with what covers
/// both of them, never with another such. Exclusive locks conflict with whatever overlaps, of the same open,
/// too; shared ones with the exclusive ones of others: an open may stack them on its own.
///
/// Complexity: linear in the locks of the file. Thread safety: the loop's thread.
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
    /// One that is waited for; lives in the waiting request.
    struct waiter {
        lock wanted;
        event<wire::nt_status>* granted;
    };

    /// Whether a range does not reach past the last of 2^64 bytes.
    [[nodiscard]] static constexpr bool is_lockable(range where) noexcept {
        return where.length == 0 or where.offset <= ~std::uint64_t{0} - (where.length - 1);
    }

    /// Takes the lock if nobody is in the way; otherwise says false.
    [[nodiscard]] bool try_lock(const lock& wanted);
    /// Has `waiting` granted, in the order of arrival, when nothing is in its way any more. It is told at
    /// most once; forget() takes it out whether it was or not.
    void enqueue(waiter& waiting);
    void forget(waiter& waiting) noexcept;
    /// Gives one lock of exactly that range and owner back, an exclusive one first. False if there is none.
    [[nodiscard]] bool unlock(const open& owner, range where) noexcept;
    /// Takes back the lock taken last, which nobody has seen: of a list that was not granted as a whole.
    void undo_last(const open& owner) noexcept;
    /// Gives back everything an open has, and ends what waits for it with RANGE_NOT_LOCKED.
    void release_all(const open& owner) noexcept;

    /// Whether `who` may read (or write) the range: not when another open has it exclusively (or at all);
    /// and what it shares itself it may not write either. No bytes are always allowed.
    [[nodiscard]] bool allows_read(const open& who, range where) const noexcept;
    [[nodiscard]] bool allows_write(const open& who, range where) const noexcept;

    [[nodiscard]] bool is_empty() const noexcept { return locks_.empty() and waiters_.empty(); }
    [[nodiscard]] std::size_t held_by(const open& owner) const noexcept;

private:
    void serve_waiters() noexcept;

    std::vector<lock> locks_;  // in the order they were taken
    std::vector<waiter*> waiters_;
};

}  // namespace sluice::smb::server

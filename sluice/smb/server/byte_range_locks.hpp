#pragma once

#include <cstdint>
#include <vector>

#include "sluice/smb/server/event.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

class open;

/// Which bytes of a file are locked, and by whom ([MS-FSA] 2.1.4.10, 2.1.5.8; [MS-SMB2] 3.3.5.14).
///
/// Offsets and lengths use all 64 bits; a range of no bytes conflicts with one that contains its offset
/// strictly inside. Locks of one open exclude each other as those of two do, except that shared ones never
/// exclude shared ones. Thread safety: the loop's thread.
class byte_range_locks {
public:
    struct range {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
    };
    struct lock {
        const open* owner;
        range where;
        bool is_exclusive;
    };
    /// One that is waited for; lives in the waiting request.
    struct waiter {
        const open* owner;
        range where;
        bool is_exclusive;
        event<wire::nt_status>* granted;
    };

    /// Takes the lock if nobody is in the way; otherwise says false.
    [[nodiscard]] bool try_lock(const lock& wanted);
    /// Has `waiting` granted, in the order of arrival, when nothing is in its way any more.
    void enqueue(waiter& waiting);
    void forget(waiter& waiting) noexcept;
    /// Gives one lock back: the latest of that exact range and owner. False if there is none.
    [[nodiscard]] bool unlock(const open& owner, range where) noexcept;
    /// Gives back everything an open has, and ends what waits for it with RANGE_NOT_LOCKED.
    void release_all(const open& owner) noexcept;

    /// Whether `who` may read (or write) the range: not when another open has it exclusively (or at all).
    [[nodiscard]] bool allows_read(const open& who, range where) const noexcept;
    [[nodiscard]] bool allows_write(const open& who, range where) const noexcept;

    [[nodiscard]] bool is_empty() const noexcept { return locks_.empty() and waiters_.empty(); }
    [[nodiscard]] std::size_t held_by(const open& owner) const noexcept;

private:
    void serve_waiters() noexcept;

    std::vector<lock> locks_;
    std::vector<waiter*> waiters_;
};

}  // namespace sluice::smb::server

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

/// Every session of the server by its ID ([MS-SMB2] 3.3.1.5, GlobalSessionTable).
/// Invariants:
///   1. A session in the table has the ID that it is found by; no ID is given twice.
///   2. The sessions of one user and client that have claimed a dialect, and are not gone, have the
///   same one.
/// Monitor: any thread; `mutex_` guards the table. What it returns holds the sessions, which may
/// have ended.
/// Allocates: a node per session.
class session_table {
public:
    /// The IDs follow `id_before`.
    explicit session_table(std::uint64_t id_before) noexcept : last_id_(id_before) {}
    session_table(const session_table&) = delete;
    session_table& operator=(const session_table&) = delete;

    /// An ID for a new session. It is not given again.
    [[nodiscard]] std::uint64_t take_id() noexcept {
        // relaxed: a number, that orders nothing.
        return last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    /// `fresh` has an ID of take_id().
    void add(const std::shared_ptr<session>& fresh);
    /// Returns the last ID that was given.
    [[nodiscard]] std::uint64_t last_id() const noexcept { return last_id_.load(std::memory_order_relaxed); }
    /// Null if there is none. Complexity, as of remove(): logarithmic.
    [[nodiscard]] std::shared_ptr<session> find(std::uint64_t id) const noexcept;
    void remove(std::uint64_t id) noexcept;
    /// A session, whose user does not change any more, is about to become valid with the dialect of
    /// its connection. Returns false if a session of the same user and client, which is not gone,
    /// has claimed another dialect. If two claim different ones at the same time, the second one
    /// gets false.
    /// Complexity: O(n) in sessions.
    [[nodiscard]] bool claim_dialect(const session& fresh) noexcept;
    /// All of them, in the order in which they were made. Complexity: linear. Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<session>> all() const;
    /// At most `most` of them, those with the smallest IDs above `id`, in the same order.
    /// Complexity: logarithmic, and linear in the result. Allocates: the list.
    [[nodiscard]] std::vector<std::shared_ptr<session>> after(std::uint64_t id, std::size_t most) const;
    /// All sessions of a session's user from the same client, the session itself among them, in the
    /// order in which they were made. Complexity: O(n) in sessions.
    [[nodiscard]] std::vector<std::shared_ptr<session>> alike(const session& one) const;

    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return sessions_.size();
    }

private:
    struct entry {
        std::shared_ptr<session> one;
        bool has_claimed_dialect = false;
    };

    mutable ranked_mutex<lock_rank::registry> mutex_;
    std::map<std::uint64_t, entry> sessions_ SLUICE_GUARDED_BY(mutex_);
    std::atomic<std::uint64_t> last_id_;
};

}  // namespace sluice::smb::server

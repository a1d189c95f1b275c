#pragma once

#include <cstdint>

#include "sluice/base/ensure.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

/// Decides, for one open, which requests may use it, which of several ends of it wins, and which caller
/// leaves its file and discards its node.
///
/// A user is a request that has found the open. A change is a use that changes the file: a WRITE, SET_INFO or
/// copy to it, except while it waits for a client. The open itself is one user from its construction on,
/// until the duty to leave its file has been done.
///
/// Invariants:
///   1. Requests get the open from commit() until end() only; one call of end() wins.
///   2. One call of commit(), end() or end_change() returns the duty to leave the file; after it, no change
///   is
///      in flight, and none begins.
///   3. One call of end_use() returns true, after that duty has been done: then no user is left.
/// Atomic: any thread. Allocates: nothing. A template over sync/atomics.hpp, so that tests explore it.
template <class Atomics>
class basic_open_state_word {
public:
    basic_open_state_word() noexcept = default;
    basic_open_state_word(const basic_open_state_word&) = delete;
    basic_open_state_word& operator=(const basic_open_state_word&) = delete;
    ~basic_open_state_word() = default;

    /// The CREATE has completed the open. Returns false if the open has been ended before: the caller has the
    /// duty to leave the file, and then ends its use with end_use().
    [[nodiscard]] bool commit() noexcept {
        // release: the complete open; pairs with the acquire of try_use(). acquire: pairs with end().
        return (word_.fetch_or(committed, std::memory_order_acq_rel) & ended) == 0;
    }

    /// Adds a user, if the open is committed and not ended: end_use() follows.
    [[nodiscard]] bool try_use() noexcept {
        return add_unless_ended(user, [](std::uint64_t seen) { return (seen & committed) != 0; });
    }
    /// Adds a change by a user, if the open has not ended: end_change() follows.
    [[nodiscard]] bool begin_change() noexcept {
        return add_unless_ended(change, [](std::uint64_t) { return true; });
    }
    /// Returns whether the caller has the duty to leave the file: the open has ended, and this was its last
    /// change. The caller then calls end_use() once for the open, and once for itself.
    [[nodiscard]] bool end_change() noexcept {
        // release: the change; acquire: all others before the file is left. Pairs with itself and end().
        const std::uint64_t before = word_.fetch_sub(change, std::memory_order_acq_rel);
        ENSURE(before >= change, "a change ends once");
        return before / change == 1 and (before & ended) != 0;
    }
    /// Returns whether the caller discards the node: it was the last user of an ended open.
    [[nodiscard]] bool end_use() noexcept {
        // release: the use; acquire: all others before the node is discarded. Pairs with itself.
        const std::uint64_t before = word_.fetch_sub(user, std::memory_order_acq_rel);
        ENSURE((before & users) != 0, "a use ends once");
        const bool is_last = (before & users) == user;
        ENSURE(not is_last or (before & ended) != 0, "an open uses itself until it has ended");
        return is_last;
    }

    enum class ending : std::uint8_t {
        lost,           ///< another caller has ended it: FILE_CLOSED
        by_create,      ///< it was not committed: commit() returns false, and the CREATE leaves the file
        now,            ///< the caller leaves the file, and then calls end_use() for the open
        by_last_change  ///< the last end_change() returns the duty
    };
    /// Ends the open.
    [[nodiscard]] ending end() noexcept {
        // acquire: the changes that have ended; release: what commit() and end_change() find. Pairs with
        // both.
        const std::uint64_t before = word_.fetch_or(ended, std::memory_order_acq_rel);
        if ((before & ended) != 0) return ending::lost;
        if ((before & committed) == 0) return ending::by_create;
        return before / change == 0 ? ending::now : ending::by_last_change;
    }

    /// Each is a snapshot.
    [[nodiscard]] bool is_committed() const noexcept { return (load() & committed) != 0; }
    [[nodiscard]] bool has_ended() const noexcept { return (load() & ended) != 0; }
    [[nodiscard]] bool has_changes() const noexcept { return load() / change != 0; }

private:
    static constexpr std::uint64_t committed = 1;
    static constexpr std::uint64_t ended = 2;
    static constexpr std::uint64_t user = 4;
    static constexpr std::uint64_t change = std::uint64_t{1} << 33;  // 31 bits of users, 31 of changes
    static constexpr std::uint64_t users = change - user;

    [[nodiscard]] std::uint64_t load() const noexcept { return word_.load(std::memory_order_acquire); }

    template <class May>
    [[nodiscard]] bool add_unless_ended(std::uint64_t what, May may) noexcept {
        // relaxed: the exchange decides.
        std::uint64_t seen = word_.load(std::memory_order_relaxed);
        do {
            if ((seen & ended) != 0 or not may(seen)) return false;
            // acquire: pairs with commit(). A failure only looks again.
        } while (not word_.compare_exchange_weak(seen, seen + what, std::memory_order_acquire,
                                                 std::memory_order_relaxed));
        return true;
    }

    typename Atomics::template atomic<std::uint64_t> word_{user};
};

using open_state_word = basic_open_state_word<sync::real_atomics>;

}  // namespace sluice::smb::server

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/file/pending_creates.hpp"

namespace sluice::smb::server {

/// The state that all names of one domain share: see docs/algorithms/open_protocol.md.
/// Atomic, with parts that are monitors: any thread. Allocates: nothing.
class naming_state {
public:
    naming_state() noexcept = default;
    naming_state(const naming_state&) = delete;
    naming_state& operator=(const naming_state&) = delete;

    [[nodiscard]] pending_creates& creates() noexcept { return creates_; }

    /// The rename barrier: CREATE, LINK and RENAME of a file hold it shared; RENAME of a directory
    /// or a stream, and changes of a reparse point, exclusively.
    [[nodiscard]] fifo_lock& rename_barrier() noexcept { return rename_barrier_; }

    /// How many files have been removed or replaced. A CREATE reads it before its lookup, and
    /// again after joining: if it is the same, the file that the lookup has found was there
    /// when the CREATE joined.
    [[nodiscard]] std::uint64_t removals() const noexcept {
        return removals_.load(std::memory_order_seq_cst);  // pairs with count_removal()
    }
    /// A file has been removed or replaced. Called before the file table forgets it.
    void count_removal() noexcept {
        removals_.fetch_add(1, std::memory_order_seq_cst);  // pairs with removals()
        record_change();
    }

    /// How many changes of names have ended: creations, renames, links and removals. Each changes
    /// the times of a directory. The status of a directory is current if the number is the same as
    /// before it was asked for.
    [[nodiscard]] std::uint64_t changes() const noexcept {
        return changes_.load(std::memory_order_seq_cst);  // pairs with record_change()
    }
    /// A change of a name has ended. Called before the client that made it has its reply.
    // With changes().
    void record_change() noexcept { changes_.fetch_add(1, std::memory_order_seq_cst); }

private:
    pending_creates creates_;
    fifo_lock rename_barrier_;
    std::atomic<std::uint64_t> removals_{0};
    std::atomic<std::uint64_t> changes_{0};
};

/// The naming states of a server, by domain. A state exists for as long as the table, so that two
/// requests never have different ones: there are as many as file systems that a share reaches.
/// Monitor: any thread; `mutex_` guards the map. Every CREATE asks for a state, so those of the
/// first domains are found without the mutex. Allocates: a state, at the first use of a domain.
class naming_states {
public:
    /// `domain`: fs_domain::number().
    [[nodiscard]] naming_state& of(std::uint32_t domain) {
        std::atomic<naming_state*>* const place = domain < found_.size() ? &found_[domain] : nullptr;
        // acquire: the state; pairs with the release below.
        if (place != nullptr)
            if (naming_state* const known = place->load(std::memory_order_acquire)) return *known;
        const lock_guard held(mutex_);
        std::unique_ptr<naming_state>& known = states_[domain];
        if (known == nullptr) known = std::make_unique<naming_state>();
        if (place != nullptr) place->store(known.get(), std::memory_order_release);
        return *known;
    }
    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return states_.size();
    }

private:
    std::array<std::atomic<naming_state*>, 64> found_{};
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::map<std::uint32_t, std::unique_ptr<naming_state>> states_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server

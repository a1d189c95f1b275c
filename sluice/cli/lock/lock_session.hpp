#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/lock/options.hpp"
#include "sluice/fsmutex/best_available.hpp"
#include "sluice/fsmutex/process/inherited_lock.hpp"

namespace sluice::cli {

/// The reason why a lock was not acquired, with the exit status of the program.
struct lock_refusal {
    exit_code status;
    std::string message;
    bool is_conflict = false;  // only another holder prevents it
};

/// The lock that `sluice lock` holds while a command runs: a request of a mutex, and a lock of the
/// kernel that the command inherits. With the algorithm flock there is no mutex.
///
/// Thread safety: one thread. Not movable.
class lock_session {
public:
    explicit lock_session(const lock_options& options) : options_(options) {}
    lock_session(const lock_session&) = delete;
    lock_session& operator=(const lock_session&) = delete;

    /// Opens the file and waits for the lock. Returns std::nullopt if the lock is held. Blocks:
    /// until granted or the timeout has passed.
    [[nodiscard]] std::optional<lock_refusal> acquire();

    /// Returns whether a previous holder died without releasing the lock.
    [[nodiscard]] bool owner_died() const noexcept { return held_ and held_->owner_died(); }
    /// Returns the descriptors by which another process keeps the lock without this one.
    [[nodiscard]] std::vector<int> inheritable() const;
    /// Returns whether no sign was found that another process may hold the lock as well.
    [[nodiscard]] bool is_intact() const noexcept { return not held_ or held_->check().has_value(); }
    /// Releases the lock for all processes.
    void release() noexcept;

    /// Releases the resources that need this process, so that only the descriptors of inheritable()
    /// hold the lock. Returns the reason if this is not possible. The descriptors stay open until
    /// the process ends.
    [[nodiscard]] std::optional<lock_refusal> leave_to_descriptors();

private:
    [[nodiscard]] std::optional<lock_refusal> acquire_whole_file();
    [[nodiscard]] std::optional<lock_refusal> acquire_mutex(const fsmutex::algorithm_choice& choice);
    [[nodiscard]] std::optional<lock_refusal> acquire_inherited();
    [[nodiscard]] lock_refusal not_granted() const;
    [[nodiscard]] lock_refusal not_locked(const error& why) const;
    [[nodiscard]] deadline remaining() const;

    const lock_options& options_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    // In the order of their dependencies: each is destroyed before those it needs.
    std::optional<fsmutex::inherited_lock> inherited_;
    std::unique_ptr<fsmutex::shared_fs_mutex> mutex_;
    std::optional<fsmutex::fs_mutex_guard> held_;
};

/// Returns the entities that the options name, or the whole file if there is none.
[[nodiscard]] std::vector<fsmutex::entity> entities_of(const lock_options& options);

/// Returns the algorithm to use; std::nullopt: flock(2) alone.
[[nodiscard]] result<std::optional<fsmutex::algorithm_choice>> algorithm_of(const lock_options& options);

/// Returns the exit status for a file that cannot be opened or created.
[[nodiscard]] exit_code status_of_open(const error& why) noexcept;

}  // namespace sluice::cli

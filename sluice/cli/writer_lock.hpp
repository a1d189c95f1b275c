#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/fsmutex/process/inherited_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"

namespace sluice::cli {

/// Excludes all other writers of a file during its lifetime, in any process, and on any host if
/// several hosts share the file system. It is a cross-process mutex in `<path>.lock`, the whole of
/// it, held exclusively: the lock that `sluice lock <path>.lock -- COMMAND` acquires and `sluice
/// lock --list <path>.lock` shows. On a local file system it also holds flock(2) on that file,
/// which is all that `sluice lock` acquires on a file that is not a mutex yet. Readers are not
/// excluded.
///
/// A writer of a file that has no lock protocol of its own (a FAT image, the user database)
/// acquires one first and keeps it until it has closed the file. Move-only; a moved-from object
/// holds nothing. Thread safety: one thread at a time.
class writer_lock {
public:
    /// Long enough to detect that a holder has died, which takes 50 ms.
    static constexpr std::chrono::milliseconds at_once{250};

    /// Errors: EBUSY if the lock was not acquired in time; the message names the holder: process,
    /// host, and since when. Also the errors of creating the lock file, which is in the directory
    /// of the file. Allocates: the mutex. Blocks: until acquired or the deadline passes.
    [[nodiscard]] static result<writer_lock> take(const std::string& path, deadline within = at_once) {
        return take(path, fsmutex::lock_mode::exclusive, within);
    }
    /// Acquires the lock shared, for readers that need a file without writers. A writer excludes
    /// it, and it excludes writers.
    /// Errors, Allocates, Blocks: as take.
    [[nodiscard]] static result<writer_lock> keep_writers_away(const std::string& path,
                                                               deadline within = at_once) {
        return take(path, fsmutex::lock_mode::shared, within);
    }

    writer_lock(writer_lock&&) noexcept = default;
    writer_lock& operator=(writer_lock&&) = delete;  // would destroy the old mutex before its guard
    ~writer_lock();

    /// Returns whether the previous holder died while holding it: the file may be half written.
    [[nodiscard]] bool previous_holder_died() const noexcept { return held_.owner_died(); }

private:
    [[nodiscard]] static result<writer_lock> take(const std::string& path, fsmutex::lock_mode how,
                                                  deadline within);
    writer_lock(std::optional<fsmutex::inherited_lock> flock, std::unique_ptr<fsmutex::shared_fs_mutex> mutex,
                fsmutex::fs_mutex_guard held) noexcept
        : flock_(std::move(flock)), mutex_(std::move(mutex)), held_(std::move(held)) {}

    std::optional<fsmutex::inherited_lock> flock_;     // first: closed after the mutex
                                                       // has removed the file
    std::unique_ptr<fsmutex::shared_fs_mutex> mutex_;  // outlives its guard
    fsmutex::fs_mutex_guard held_;
};

}  // namespace sluice::cli

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/fsmutex/inherited_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"

namespace sluice::cli {

/// Keeps everybody else from writing to a file for as long as it lives: who takes it first has it, in
/// whatever process, or host where the file system can be had by several. It is a mutex in `<path>.lock`, all
/// of it, exclusively: what `sluice lock <path>.lock -- COMMAND` takes, and `sluice lock --list <path>.lock`
/// shows. On a volume of this host it is flock(2) of that file, too, which is all that `sluice lock` takes of
/// a file that is not a mutex yet. Readers are not kept away.
///
/// Whoever opens something for writing that cannot know of mutexes (a FAT image, the user database) is handed
/// one and keeps it until it has closed the file. Move-only; a moved-from one holds nothing. Thread safety:
/// one thread at a time.
class write_hold {
public:
    /// Long enough to learn that a holder has died, which takes 50 ms.
    static constexpr std::chrono::milliseconds at_once{250};

    /// Errors: EBUSY if it was not had in time, and then the message names who has it: process, host, since
    /// when; those of making the lock file, which stands in the file's folder. Allocates: the mutex. Blocks:
    /// until had or the deadline passes.
    [[nodiscard]] static result<write_hold> take(const std::string& path, deadline within = at_once) {
        return take(path, fsmutex::lock_mode::exclusive, within);
    }
    /// Shared with others who only need that nobody writes: keeps writers away, and is refused by one.
    /// Errors, Allocates, Blocks: as take.
    [[nodiscard]] static result<write_hold> keep_writers_away(const std::string& path,
                                                              deadline within = at_once) {
        return take(path, fsmutex::lock_mode::shared, within);
    }

    write_hold(write_hold&&) noexcept = default;
    write_hold& operator=(write_hold&&) = delete;  // would end the old mutex before its guard
    ~write_hold();

    /// Whoever had it before died with it: the file may be half written.
    [[nodiscard]] bool previous_holder_died() const noexcept { return held_.owner_died(); }

private:
    [[nodiscard]] static result<write_hold> take(const std::string& path, fsmutex::lock_mode how,
                                                 deadline within);
    write_hold(std::optional<fsmutex::inherited_lock> flock, std::unique_ptr<fsmutex::shared_fs_mutex> mutex,
               fsmutex::fs_mutex_guard held) noexcept
        : flock_(std::move(flock)), mutex_(std::move(mutex)), held_(std::move(held)) {}

    std::optional<fsmutex::inherited_lock> flock_;     // first: closed when the mutex has removed the file
    std::unique_ptr<fsmutex::shared_fs_mutex> mutex_;  // outlives its guard
    fsmutex::fs_mutex_guard held_;
};

}  // namespace sluice::cli

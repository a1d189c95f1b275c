#include "sluice/cli/writer_lock.hpp"

#include <fmt/core.h>

#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/fsmutex/best_available.hpp"

namespace sluice::cli {

namespace {

using namespace sluice::fsmutex;

// Describes the holder that conflicts now; it may have released the lock since the refusal.
[[nodiscard]] std::string holder_of(shared_fs_mutex& mutex) {
    const auto all = mutex.list();
    if (not all) return "another process";
    for (const listed_request& each : *all) {
        if (each.what != listed_request::state::holds) continue;
        const auto seconds = std::chrono::floor<std::chrono::seconds>(each.since);
        return fmt::format("process {} on {} since {}Z", each.process_id, terminal_text(each.host),
                           utc_text(iso_seconds, std::chrono::system_clock::to_time_t(seconds)));
    }
    return "a process that has ended since";
}

}  // namespace

result<writer_lock> writer_lock::take(const std::string& path, lock_mode how, deadline within) {
    const std::string lock_path = path + ".lock";
    // An error may name another subject, such as the directory of the file, or a descriptor.
    const auto not_locked = [&](const error& why) {
        return failure(error::with_path(why.code(), why.operation(), lock_path));
    };
    const auto choice = best_available({}, lock_path);
    if (not choice) return not_locked(choice.error());
    auto mutex = open(choice->which, {}, lock_path);
    if (not mutex) return not_locked(mutex.error());
    const auto held_by = [&](const std::string& who) {
        const char* const what = how == lock_mode::shared ? "exclude writers" : "open for writing";
        return failure(error::with_path(EBUSY, what, fmt::format("{} (held by {})", path, who)));
    };
    const entity all = entity::of_name("", how);
    const dependencies from = dependencies::of_this_machine();
    const deadline until = within.is_none() or within.is_zero()
                               ? within
                               : deadline(within.steady_end(from.clock->steady_now(), from.clock->utc_now()));
    auto held = (*mutex)->lock(all, until);
    if (not held and held.error() == std::errc::timed_out) return held_by(holder_of(**mutex));
    if (not held) return not_locked(held.error());
    auto flock = inherited_lock::beside(**mutex, std::span(&all, 1));
    if (not flock) return not_locked(flock.error());
    if (not flock->is_of_whole_file()) {  // other hosts can access it: there the mutex alone is the
                                          // lock
        flock->allow_removal();
        return writer_lock(std::nullopt, *std::move(mutex), *std::move(held));
    }
    // The destructor does not remove the lock file, because another process has locked it.
    writer_lock made(*std::move(flock), *std::move(mutex), *std::move(held));
    const auto locked = made.flock_->acquire(until, from);
    if (locked) return made;
    if (locked.error() != std::errc::timed_out) return not_locked(locked.error());
    return held_by("a process that has locked " + lock_path + " by flock(2)");
}

writer_lock::~writer_lock() {
    if (mutex_ == nullptr or not flock_) return;
    flock_->release();
    flock_->allow_removal();
}

}  // namespace sluice::cli

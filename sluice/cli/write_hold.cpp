#include "sluice/cli/write_hold.hpp"

#include <fmt/core.h>

#include "sluice/cli/status/time_text.hpp"
#include "sluice/fsmutex/best_available.hpp"

namespace sluice::cli {

namespace {

using namespace sluice::fsmutex;

// Who is in the way now; a moment after the refusal it may be nobody any more.
[[nodiscard]] std::string holder_of(shared_fs_mutex& mutex) {
    const auto all = mutex.list();
    if (not all) return "another process";
    for (const listed_request& each : *all) {
        if (each.what != listed_request::standing::holds) continue;
        const auto seconds = std::chrono::floor<std::chrono::seconds>(each.since);
        return fmt::format("process {} on {} since {}Z", each.process_id, each.host,
                           utc_text(iso_seconds, std::chrono::system_clock::to_time_t(seconds)));
    }
    return "a process that is gone by now";
}

}  // namespace

result<write_hold> write_hold::take(const std::string& path, lock_mode how, deadline within) {
    const std::string lock_path = path + ".lock";
    const auto choice = best_available({}, lock_path);
    if (not choice) return failure(choice.error());
    auto mutex = open(choice->which, {}, lock_path);
    if (not mutex) return failure(mutex.error());
    auto held = (*mutex)->lock(entity::of_name("", how), within);
    if (held) return write_hold(*std::move(mutex), *std::move(held));
    if (held.error() != std::errc::timed_out) return failure(held.error());
    return failure(error::with_path(EBUSY,
                                    how == lock_mode::shared ? "keep writers away from" : "open for writing",
                                    fmt::format("{} (held by {})", path, holder_of(**mutex))));
}

}  // namespace sluice::cli

#include "sluice/cli/doctor/timed_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr std::chrono::milliseconds redraw_every{100};

// Shared with the thread, which may outlive the wait.
struct shared_run {
    finding_list findings;
    std::mutex guard;
    std::condition_variable ended;
    bool has_ended = false;
};

}  // namespace

timed_result run_within(std::function<void(finding_list&)> checks, std::chrono::milliseconds within,
                        bool shows_progress) {
    const auto shared = std::make_shared<shared_run>();
    const auto until = std::chrono::steady_clock::now() + within;
    std::thread worker([shared, checks = std::move(checks)] {
        checks(shared->findings);
        const std::scoped_lock held(shared->guard);
        shared->has_ended = true;
        shared->ended.notify_one();
    });
    std::unique_lock held(shared->guard);
    while (not shared->has_ended and std::chrono::steady_clock::now() < until) {
        if (shows_progress)
            fmt::print(stderr, "\rchecking: {} ...\x1b[K", terminal_text(shared->findings.step()));
        shared->ended.wait_until(held, std::min(until, std::chrono::steady_clock::now() + redraw_every));
    }
    const bool has_ended = shared->has_ended;
    held.unlock();
    has_ended ? worker.join() : worker.detach();
    if (shows_progress) fmt::print(stderr, "\r\x1b[K");
    timed_result result{.findings = shared->findings.findings(), .is_complete = has_ended};
    if (not result.is_complete)
        result.findings.push_back(
            {.level = severity::problem,
             .check = "time",
             .what = fmt::format("the check '{}' did not end within {} s", shared->findings.step(),
                                 std::chrono::duration_cast<std::chrono::seconds>(within).count()),
             .evidence = "a server or file system that does not answer holds it",
             .remedy = "remove the cause that the other findings name, and run this command again"});
    return result;
}

}  // namespace sluice::cli::doctor

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/result.hpp"
#include "sluice/cli/status/findings.hpp"

namespace sluice::cli {

/// The findings of checks that read files, and so may block. A thread of its own runs the checks,
/// so that no event loop waits for them. They run once at the start, and again after a request for
/// findings that are older than `fresh_for`.
///
/// The destructor waits for the checks in progress. If they hang, the stop deadline of the server
/// ends the process.
///
/// Invariant: at most one run is in progress, and at most findings_max findings are kept.
/// Thread safety: any thread. Allocates: the findings.
class background_findings {
public:
    using checks = std::function<std::vector<finding>()>;
    static constexpr std::chrono::seconds fresh_for{60};
    static constexpr std::chrono::seconds overdue_after{10};
    static constexpr std::size_t findings_max = 100;  // further ones are dropped

    /// Starts the thread and the first run. `run` owns all that it uses, and is called on that
    /// thread; `clock` outlives the object. Errors: EAGAIN if no thread can be started.
    [[nodiscard]] static result<std::unique_ptr<background_findings>> start(checks run,
                                                                            const clock_source& clock);
    background_findings(const background_findings&) = delete;
    background_findings& operator=(const background_findings&) = delete;
    /// Blocks: until the run in progress ends.
    ~background_findings();

    /// Begins a run, unless one is in progress, or the last one began less than `fresh_for` ago.
    void refresh();
    /// Returns whether a run is in progress that is not overdue: it is worth waiting for.
    [[nodiscard]] bool is_pending() const;
    /// Adds the findings of the last run, and one about a run that is overdue. Blocks: never.
    void add_findings(std::vector<finding>& to) const;

private:
    background_findings(checks run, const clock_source& clock) noexcept
        : run_(std::move(run)), clock_(clock) {}
    void work();
    void begin_run();
    [[nodiscard]] bool is_overdue() const;

    checks run_;
    const clock_source& clock_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable has_work_;
    bool is_running_ = false;
    bool has_ended_ = false;
    bool has_results_ = false;
    clock_source::steady_time began_{};
    std::vector<finding> found_;
    std::thread runner_;  // the constructing thread's
};

}  // namespace sluice::cli

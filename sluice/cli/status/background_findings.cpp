#include "sluice/cli/status/background_findings.hpp"

#include <fmt/core.h>

#include <exception>
#include <system_error>

namespace sluice::cli {

namespace {

// A check that fails in an unexpected way must not end the server.
[[nodiscard]] std::vector<finding> findings_of(const background_findings::checks& run) {
    try {
        return run();
    } catch (const std::exception& why) {
        return {{.severity = finding_severity::warning,
                 .what = "a check of this host has failed",
                 .evidence = why.what(),
                 .hint = "run 'sluice doctor' on this host"}};
    }
}

}  // namespace

result<std::unique_ptr<background_findings>> background_findings::start(checks run,
                                                                        const clock_source& clock) {
    std::unique_ptr<background_findings> started(new background_findings(std::move(run), clock));
    started->begin_run();
    try {
        started->runner_ = std::thread([&of = *started] { of.work(); });
    } catch (const std::system_error& why) {
        return failure({why.code().value(), "start a thread"});
    }
    return started;
}

background_findings::~background_findings() {
    {
        const std::lock_guard held(mutex_);
        has_ended_ = true;
    }
    has_work_.notify_one();
    if (runner_.joinable()) runner_.join();
}

void background_findings::begin_run() {
    is_running_ = true;
    began_ = clock_.steady_now();
}

bool background_findings::is_overdue() const {
    return is_running_ and clock_.steady_now() - began_ >= overdue_after;
}

void background_findings::refresh() {
    const std::lock_guard held(mutex_);
    if (is_running_ or clock_.steady_now() - began_ < fresh_for) return;
    begin_run();
    has_work_.notify_one();
}

bool background_findings::is_pending() const {
    const std::lock_guard held(mutex_);
    return is_running_ and not is_overdue();
}

void background_findings::add_findings(std::vector<finding>& to) const {
    const std::lock_guard held(mutex_);
    if (is_overdue())
        to.push_back(
            {.severity = finding_severity::warning,
             .what = fmt::format("the checks of this host did not end within {} s", overdue_after.count()),
             .evidence = has_results_ ? "its other findings are older" : "",
             .hint = "a file system may not answer; run 'sluice doctor' on this host"});
    else if (not has_results_)
        to.push_back({.severity = finding_severity::info,
                      .what = "the checks of this host are in progress",
                      .hint = "reload the page"});
    to.insert(to.end(), found_.begin(), found_.end());
}

void background_findings::work() {
    std::unique_lock held(mutex_);
    for (;;) {
        has_work_.wait(held, [this] { return has_ended_ or is_running_; });
        if (has_ended_) return;
        held.unlock();
        std::vector<finding> fresh = findings_of(run_);
        if (fresh.size() > findings_max) fresh.resize(findings_max);
        held.lock();
        found_ = std::move(fresh);
        has_results_ = true;
        is_running_ = false;
    }
}

}  // namespace sluice::cli

#include "sluice/cli/reload_requests.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "sluice/base/ensure.hpp"

namespace sluice::cli {

namespace {

using clock = std::chrono::steady_clock;

// The results of the threads of one request. A thread that hangs keeps it.
struct findings {
    std::mutex mutex;  // guards the rest
    std::condition_variable has_news;
    std::optional<reload_requests::read_options> options;
    std::vector<std::string> answered;
};

// Runs `what` on a thread that may never end. Returns false if there is none.
template <class What>
[[nodiscard]] bool run_detached(What what) {
    try {
        std::thread(std::move(what)).detach();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

// A disk image may have the number of a partition after its name.
[[nodiscard]] std::vector<std::string> paths_of(const serve_options& options) {
    std::vector<std::string> paths;
    for (const share_options& share : options.shares)
        paths.push_back(share.path);
    std::ranges::sort(paths);
    const auto repeated = std::ranges::unique(paths);
    paths.erase(repeated.begin(), repeated.end());
    return paths;
}

// On a thread of the request: returns the options, and the shares that have not answered in time.
[[nodiscard]] reload_requests::outcome find_out(const reload_requests::actions& how) {
    const auto state = std::make_shared<findings>();
    const auto until = clock::now() + how.within;
    const bool reads = run_detached([state, read = how.read] {
        auto options = read();
        const std::lock_guard held(state->mutex);
        state->options = std::move(options);
        state->has_news.notify_all();
    });
    std::unique_lock held(state->mutex);
    (void)state->has_news.wait_until(held, until, [&] { return state->options or not reads; });
    if (not state->options)
        return {
            .options = std::unexpected("the file system of the configuration or of a share does not answer"),
            .silent = {}};
    if (not*state->options) return {.options = *state->options, .silent = {}};
    const std::vector<std::string> paths = paths_of(**state->options);
    held.unlock();
    for (const std::string& path : paths)
        (void)run_detached([state, path, ask = how.ask] {
            ask(path);
            const std::lock_guard answered(state->mutex);
            state->answered.push_back(path);
            state->has_news.notify_all();
        });
    held.lock();
    (void)state->has_news.wait_until(held, until, [&] { return state->answered.size() == paths.size(); });
    std::ranges::sort(state->answered);
    reload_requests::outcome found{.options = *state->options, .silent = {}};
    std::ranges::set_difference(paths, state->answered, std::back_inserter(found.silent));
    return found;
}

}  // namespace

// The loop of a reload_requests, and itself; null once it has ended.
struct reload_requests::link {
    std::mutex mutex;  // guards `loop`
    io::io_multiplexer* loop = nullptr;
    reload_requests* owner = nullptr;  // the loop's
};

void call_file_system_of(const std::string& path) noexcept {
    const int opened = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (opened < 0) return;
    struct stat status{};
    struct statfs volume{};
    (void)::fstat(opened, &status);
    (void)::fstatfs(opened, &volume);
    (void)::close(opened);
}

reload_requests::reload_requests(io::io_multiplexer& loop, actions how)
    : how_(std::move(how)), link_(std::make_shared<link>()) {
    link_->loop = &loop;
    link_->owner = this;
}

void reload_requests::end() noexcept {
    link_->owner = nullptr;
    const std::lock_guard held(link_->mutex);
    link_->loop = nullptr;
}

void reload_requests::add() {
    if (link_->owner == nullptr) return;
    is_wanted_again_ = is_in_progress_;
    if (is_in_progress_) return;
    is_in_progress_ = true;
    const bool has_begun = run_detached([at = link_, how = how_] {
        outcome found = find_out(how);
        const std::lock_guard held(at->mutex);
        if (at->loop == nullptr) return;
        (void)at->loop->post([at, found = std::move(found)]() noexcept {
            if (at->owner != nullptr) at->owner->finish(found);
        });
    });
    if (not has_begun) finish({.options = std::unexpected("no thread can be started"), .silent = {}});
}

void reload_requests::finish(const outcome& found) {
    ENSURE(is_in_progress_, "a reload that ends was in progress");
    how_.reload(found);
    is_in_progress_ = false;
    if (std::exchange(is_wanted_again_, false)) add();
}

}  // namespace sluice::cli

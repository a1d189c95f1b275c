#include "sluice/cli/serve/reload_requests.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/serve/homes/home_directories.hpp"
#include "sluice/cli/serve/share_snapshots.hpp"

namespace sluice::cli {

namespace {

using clock = std::chrono::steady_clock;

// In unanswered(): the file system of the configuration file.
constexpr const char* configuration = "the configuration";
constexpr const char* no_answer = "the file system of the configuration does not answer";

// The results of the threads of one reload. A thread that is late keeps it.
struct findings {
    std::mutex mutex;  // guards the rest
    std::condition_variable has_news;
    bool is_over = false;
    std::optional<reload_requests::read_options> options;
    share_roots roots;
    std::size_t answers = 0;  // of threads that have found roots
};

template <class What>
[[nodiscard]] bool run_detached(What what) {
    try {
        std::thread(std::move(what)).detach();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

}  // namespace

// The state that the threads share with the loop. The loop is null after end().
struct reload_requests::link : std::enable_shared_from_this<link> {
    mutable std::mutex mutex;  // guards `loop` and `called`
    io::io_multiplexer* loop = nullptr;
    std::set<std::string> called;      // by threads: the paths of shares, and `configuration`
    reload_requests* owner = nullptr;  // the loop's

    // Calls the owner on the loop, as soon as there is memory for that.
    template <class What>
    void post(What what) {
        while (not try_to_post(what))
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    template <class What>
    [[nodiscard]] bool try_to_post(const What& what) {
        const std::lock_guard held(mutex);
        if (loop == nullptr) return true;
        return loop
            ->post([at = shared_from_this(), what = What(what)]() noexcept {
                if (at->owner != nullptr) what(*at->owner);
            })
            .has_value();
    }

    // Calls `call` on a thread, which adds its result to `found` by `keep`. Returns false if an
    // earlier reload still waits for the same, or if no thread can be started.
    template <class Call, class Keep>
    [[nodiscard]] bool start(const std::shared_ptr<findings>& found, const std::string& what, Call call,
                             Keep keep) {
        {
            const std::lock_guard held(mutex);
            if (loop == nullptr or not called.insert(what).second) return false;
        }
        const bool runs = run_detached([at = shared_from_this(), found, what, call, keep] {
            auto result = call();
            at->forget(what);
            std::unique_lock held(found->mutex);
            if (found->is_over) {
                held.unlock();
                at->post([what = std::string(what)](reload_requests& owner) { owner.answer_late(what); });
                return;
            }
            keep(*found, std::move(result));
            found->has_news.notify_all();
        });
        if (not runs) forget(what);
        return runs;
    }
    void forget(const std::string& what) {
        const std::lock_guard held(mutex);
        called.erase(what);
    }

    // Starts the threads for the roots of the shares. Returns how many there are.
    [[nodiscard]] std::size_t find_roots(const serve_options& options, const actions& how,
                                         const std::shared_ptr<findings>& found) {
        std::set<std::string> paths;
        for (const share_options& share : options.shares) {
            if (not share.referral.empty() or share.is_home) continue;
            paths.insert(share.path);
            if (std::string snapshots = snapshot_directory_of(options, share); not snapshots.empty())
                paths.insert(std::move(snapshots));
        }
        const auto count =
            static_cast<std::size_t>(std::ranges::count_if(paths, [&](const std::string& path) {
                return start(
                    found, path, [find = how.find_root, path] { return find(path); },
                    [path](findings& to, std::optional<share_root> root) {
                        to.roots.emplace(path, answer_of(root));
                        ++to.answers;
                    });
            }));
        return count + (finds_home_roots(options, how, found) ? 1 : 0);
    }

    // One thread for all users, of whom there may be many. Returns whether it has started.
    [[nodiscard]] bool finds_home_roots(const serve_options& options, const actions& how,
                                        const std::shared_ptr<findings>& found) {
        if (std::ranges::none_of(options.shares, &share_options::is_home)) return false;
        return start(
            found, roots_of_homes(options), [find = how.find_home_roots, options] { return find(options); },
            [](findings& to, share_roots roots) {
                to.roots.merge(roots);
                ++to.answers;
            });
    }

    // The reload: on a thread of its own.
    void run(const actions& how) {
        const auto found = std::make_shared<findings>();
        const bool reads = start(found, configuration, how.read, [](findings& to, read_options&& options) {
            to.options = std::move(options);
        });
        std::unique_lock held(found->mutex);
        const auto wait_for = [&](auto has_come) {
            (void)found->has_news.wait_until(held, clock::now() + how.within, has_come);
        };
        if (reads) wait_for([&] { return found->options.has_value(); });
        if (found->options and *found->options) {
            held.unlock();
            const std::size_t count = find_roots(**found->options, how, found);
            held.lock();
            wait_for([&] { return found->answers == count; });
        }
        // In this section, so that a late answer comes to the loop after the end of the reload.
        found->is_over = true;
        post([options = found->options.value_or(std::unexpected(no_answer)),
              roots = found->roots](reload_requests& owner) { owner.finish(options, roots); });
    }
};

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

std::vector<std::string> reload_requests::unanswered() const {
    const std::lock_guard held(link_->mutex);
    return {link_->called.begin(), link_->called.end()};
}

void reload_requests::add() {
    if (link_->owner == nullptr) return;
    is_wanted_again_ = is_in_progress_;
    if (is_in_progress_) return;
    is_in_progress_ = true;
    const bool has_begun = run_detached([at = link_, how = how_] { at->run(how); });
    if (not has_begun) finish(std::unexpected("no thread can be started"), {});
}

void reload_requests::finish(const read_options& options, const share_roots& answered) {
    ENSURE(is_in_progress_, "a reload that ends was in progress");
    needed_ = how_.reload(options, answered);
    if (not options) needed_.emplace_back(configuration);
    is_in_progress_ = false;
    if (std::exchange(is_wanted_again_, false)) return add();
    if (how_.ended) how_.ended();
}

void reload_requests::answer_late(const std::string& what) {
    // The reload in progress may need it as well, and has begun without it.
    if (is_in_progress_ or std::ranges::find(needed_, what) != needed_.end()) add();
}

}  // namespace sluice::cli

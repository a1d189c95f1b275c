#include "sluice/cli/fat/tree_extraction.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned threads_max = 4;
// Threads receive steps in groups, each of a few small files or of one large one.
constexpr std::size_t group_steps_max = 16;
constexpr std::uint64_t group_bytes_max = 1U << 20;
constexpr std::size_t unreported_groups_max = 64;
// Limit for the steps that wait for a thread: about 150,000 files with short paths.
constexpr std::size_t waiting_bytes_max = 32U << 20;

using problem_list = std::vector<object_problem>;

struct file_step {
    tree_entry file;
    bool is_in_new_directory = false;
};

/// A file to copy, or a problem that was found during the listing.
using step = std::variant<file_step, object_problem>;

std::size_t memory_of(const step& one) noexcept {
    const auto* const file = std::get_if<file_step>(&one);
    return sizeof(step) +
           (file != nullptr ? file->file.path.size() : std::get<object_problem>(one).what.size());
}

/// Successive steps.
struct step_group {
    std::size_t number = 0;
    std::vector<step> steps;
    std::uint64_t file_bytes = 0;
    std::size_t memory_bytes = 0;
};

/// Groups of steps that the listing passes to the threads, and their problems in the order of the
/// listing.
///
/// Invariants:
///   1. Groups are given out in the order of their numbers. Groups before front_ are
///      complete, and their problems are reported. reported_later_ has the problems of
///      complete groups after that.
///   2. After a problem that ends the command, which is last_, nothing more is reported.
/// Thread safety: all members, from any thread.
class group_queue {
public:
    explicit group_queue(unreadable_objects& skipped) : skipped_(skipped) {}

    void add(step_group group);
    /// Marks the end of the groups.
    void end();
    [[nodiscard]] bool is_full();
    /// Returns whether a problem ended the command.
    [[nodiscard]] bool is_over();
    /// Waits for the next group. Returns std::nullopt if none comes.
    [[nodiscard]] std::optional<step_group> take();
    void complete(std::size_t number, problem_list problems);
    /// Returns the problem that ended the command. Call it when no thread is left.
    [[nodiscard]] const std::optional<object_problem>& last() const noexcept { return last_; }

private:
    void report(const problem_list& problems);

    std::mutex mutex_;  // protects the members below
    unreadable_objects& skipped_;
    std::condition_variable changed_;
    std::deque<step_group> waiting_;
    std::size_t waiting_bytes_ = 0;
    bool is_ended_ = false;
    std::size_t front_ = 0;
    std::size_t unreported_groups_ = 0;
    std::map<std::size_t, problem_list> reported_later_;
    std::optional<object_problem> last_;
};

void group_queue::add(step_group group) {
    const std::scoped_lock guard(mutex_);
    waiting_bytes_ += group.memory_bytes;
    waiting_.push_back(std::move(group));
    changed_.notify_one();
}

void group_queue::end() {
    const std::scoped_lock guard(mutex_);
    is_ended_ = true;
    changed_.notify_all();
}

bool group_queue::is_full() {
    const std::scoped_lock guard(mutex_);
    return waiting_bytes_ >= waiting_bytes_max;
}

bool group_queue::is_over() {
    const std::scoped_lock guard(mutex_);
    return last_.has_value();
}

std::optional<step_group> group_queue::take() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] {
        return last_ or (waiting_.empty() ? is_ended_ : unreported_groups_ < unreported_groups_max);
    });
    if (last_ or waiting_.empty()) return std::nullopt;
    step_group taken = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= taken.memory_bytes;
    ++unreported_groups_;
    return taken;
}

void group_queue::complete(std::size_t number, problem_list problems) {
    const std::scoped_lock guard(mutex_);
    const bool was_stopped = unreported_groups_ == unreported_groups_max;
    reported_later_.emplace(number, std::move(problems));
    while (not last_ and not reported_later_.empty() and reported_later_.begin()->first == front_) {
        report(reported_later_.begin()->second);
        reported_later_.erase(reported_later_.begin());
        ++front_;
        --unreported_groups_;
    }
    if (was_stopped or last_) changed_.notify_all();
}

void group_queue::report(const problem_list& problems) {
    for (const object_problem& each : problems) {
        if (each.ends_the_command) {
            last_ = each;
            return;
        }
        skipped_.report(each);
    }
}

/// Copies the files of the groups that one thread receives.
class tree_worker {
public:
    tree_worker(const tree_extraction& what, progress_bar& progress)
        : what_(what),
          prefix_bytes_(what.path.empty() ? 0 : what.path.size() + 1),
          files_(what.from, progress, what.policy) {}

    [[nodiscard]] problem_list carry_out(const step_group& group) {
        problem_list problems;
        for (const step& each : group.steps) {
            if (const auto* const known = std::get_if<object_problem>(&each))
                problems.push_back(*known);
            else
                copy(std::get<file_step>(each), problems);
            // Later entries are not reported, and trying them would be useless.
            if (not problems.empty() and problems.back().ends_the_command) break;
        }
        return problems;
    }

private:
    void copy(const file_step& wanted, problem_list& problems);

    const tree_extraction& what_;
    const std::size_t prefix_bytes_;
    file_extraction files_;
    io::path_handle directory_;  // the last one, by the path parent_
    new_file::form form_ = new_file::form::named;
    std::string parent_;
};

void tree_worker::copy(const file_step& wanted, problem_list& problems) {
    std::string path = what_.target + '/';
    path.append(wanted.file.path, prefix_bytes_);
    const std::size_t slash = path.rfind('/');
    const std::string_view parent = std::string_view(path).substr(0, slash);
    if (not directory_.is_valid() or parent != parent_) {
        auto opened = io::path_handle::open(std::string(parent));
        if (not opened) return problems.push_back(problem_of_target(path, opened.error()));
        directory_ = *std::move(opened);
        form_ = new_file::form_for(directory_);
        parent_ = parent;
    }
    std::string name = path.substr(slash + 1);
    problem_list found = files_.copy(wanted.file, {.directory = directory_,
                                                   .form = form_,
                                                   .name = std::move(name),
                                                   .path = std::move(path),
                                                   .is_in_new_directory = wanted.is_in_new_directory});
    std::ranges::move(found, std::back_inserter(problems));
}

/// A copy of a tree, in progress.
class tree_copy {
public:
    tree_copy(const tree_extraction& what, progress_bar& progress, unreadable_objects& skipped)
        : what_(what), progress_(progress), skipped_(skipped), queue_(skipped), own_(what, progress) {}
    ~tree_copy() { queue_.end(); }  // before the threads are joined
    tree_copy(const tree_copy&) = delete;
    tree_copy& operator=(const tree_copy&) = delete;

    void run() {
        for_each_below(what_.from.system(), what_.path,
                       {.visit = [this](tree_entry entry) { return visit(std::move(entry)); },
                        .report = [this](const object_problem& each) { add(each); }});
        if (not filling_.steps.empty()) give_out();
        queue_.end();
        while (carry_out_next(own_)) {}
        others_.clear();
        if (queue_.last()) skipped_.report(*queue_.last());
    }

private:
    [[nodiscard]] bool visit(tree_entry entry);
    [[nodiscard]] bool make_directory(const std::string& below, std::size_t depth);
    void add(step one);
    void give_out();
    void start_thread();
    [[nodiscard]] bool carry_out_next(tree_worker& worker);

    const tree_extraction& what_;
    progress_bar& progress_;
    unreadable_objects& skipped_;
    group_queue queue_;
    tree_worker own_;
    // The state of the listing.
    std::vector<bool> is_new_;  // whether this copy created the last directory of each depth
    step_group filling_;
    std::size_t groups_ = 0;
    std::size_t threads_wanted_ = std::clamp(std::thread::hardware_concurrency(), 2U, threads_max) - 1;
    std::vector<std::jthread> others_;
};

bool tree_copy::visit(tree_entry entry) {
    const std::string_view below =
        std::string_view(entry.path).substr(what_.path.empty() ? 0 : what_.path.size() + 1);
    const auto depth = static_cast<std::size_t>(std::ranges::count(below, '/'));
    if (not is_host_path(below)) {
        add(problem_of(entry.path, "invalid file name on this system"));
    } else if (entry.status.is_directory) {
        return make_directory(std::string(below), depth);
    } else {
        const bool is_in_new = depth == 0 ? what_.is_target_new : is_new_[depth - 1];
        progress_.expect(entry.status.size_bytes);
        filling_.file_bytes += entry.status.size_bytes;
        add(file_step{.file = std::move(entry), .is_in_new_directory = is_in_new});
    }
    return not queue_.is_over();
}

bool tree_copy::make_directory(const std::string& below, std::size_t depth) {
    const std::string made = what_.target + '/' + below;
    std::error_code why;
    is_new_.resize(depth + 1);
    is_new_[depth] = fs::create_directory(made, why);
    if (not why) return true;
    object_problem problem = problem_of_target(made, error(why.value(), "create directory"));
    const bool goes_on = not problem.ends_the_command;
    add(std::move(problem));
    return goes_on;
}

void tree_copy::add(step one) {
    filling_.memory_bytes += memory_of(one);
    filling_.steps.push_back(std::move(one));
    if (filling_.steps.size() < group_steps_max and filling_.file_bytes < group_bytes_max) return;
    give_out();
    if (groups_ > 1 and others_.size() < threads_wanted_) start_thread();
    while (queue_.is_full() and carry_out_next(own_)) {}
}

void tree_copy::give_out() {
    filling_.number = groups_++;
    queue_.add(std::exchange(filling_, {}));
}

void tree_copy::start_thread() {
    try {
        others_.emplace_back([this] {
            tree_worker worker(what_, progress_);
            while (carry_out_next(worker)) {}
        });
    } catch (const std::system_error&) {  // no further thread can be started: the existing ones do
                                          // the work
        threads_wanted_ = others_.size();
    }
}

bool tree_copy::carry_out_next(tree_worker& worker) {
    const auto group = queue_.take();
    if (not group) return false;
    queue_.complete(group->number, worker.carry_out(*group));
    return true;
}

}  // namespace

bool is_host_path(std::string_view path) noexcept {
    for (;;) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (part.empty() or part == "." or part == "..") return false;
        if (slash == path.npos) return true;
        path.remove_prefix(slash + 1);
    }
}

void copy_tree(const tree_extraction& what, progress_bar& progress, unreadable_objects& skipped) {
    tree_copy(what, progress, skipped).run();
}

}  // namespace sluice::cli

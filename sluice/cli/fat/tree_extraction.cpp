#include "sluice/cli/fat/tree_extraction.hpp"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned threads_max = 4;
// Entries are given to threads in groups, each of a few small files or of one large one.
constexpr std::size_t group_entries_max = 16;
constexpr std::uint64_t group_bytes_max = 1U << 20;
constexpr std::size_t unreported_groups_max = 64;

using problem_list = std::vector<object_problem>;

/// A copy of a tree, in progress.
///
/// Invariants:
///   1. Groups are given out in the order of the entries. Groups before front_ are complete, and their
///      problems are reported. reported_later_ has the problems of complete groups after that.
///   2. After a problem that ends the command, which is last_, nothing more is reported.
class tree_copy {
public:
    tree_copy(const tree_extraction& what, progress_bar& progress, unreadable_objects& skipped)
        : what_(what), progress_(progress), skipped_(skipped) {}

    void run() {
        make_directories();
        std::vector<std::jthread> others;
        const std::size_t wanted = std::min<std::size_t>(
            std::clamp(std::thread::hardware_concurrency(), 2U, threads_max), what_.entries.size());
        for (std::size_t i = 1; i < wanted; ++i) {
            try {
                others.emplace_back([this] { work(); });
            } catch (const std::system_error&) {  // no more threads: those that exist do it
                break;
            }
        }
        work();
        others.clear();
        if (last_) skipped_.report(*last_);
    }

private:
    struct group {
        std::size_t first = 0;
        std::size_t end = 0;
    };

    [[nodiscard]] std::string below(const tree_entry& entry) const {
        return entry.path.substr(what_.prefix_bytes);
    }
    void make_directories();
    void work();
    [[nodiscard]] std::optional<group> next_group();
    void complete(const group& done, problem_list problems);
    void report(const problem_list& problems);

    const tree_extraction& what_;
    progress_bar& progress_;
    unreadable_objects& skipped_;
    std::map<std::size_t, object_problem> directory_problems_;  // by entry; constant while threads run

    std::mutex mutex_;  // protects the members below, and skipped_
    std::condition_variable front_moved_;
    std::size_t next_ = 0;
    std::size_t front_ = 0;
    std::size_t unreported_groups_ = 0;
    std::map<std::size_t, std::pair<std::size_t, problem_list>> reported_later_;  // by first entry
    std::optional<object_problem> last_;
};

/// Copies the files that one thread receives.
class tree_worker {
public:
    tree_worker(const tree_extraction& what, progress_bar& progress)
        : what_(what), files_(what.from, progress, what.policy) {}

    void copy(const tree_entry& file, const std::string& below, problem_list& problems) {
        const std::size_t slash = below.rfind('/');
        const std::string parent =
            slash == below.npos ? what_.target : what_.target + '/' + below.substr(0, slash);
        std::string path = what_.target + '/' + below;
        if (not directory_.is_valid() or parent != parent_) {
            auto opened = io::path_handle::open(parent);
            if (not opened) return problems.push_back(problem_of_target(path, opened.error()));
            directory_ = *std::move(opened);
            form_ = new_file::form_for(directory_);
            parent_ = parent;
        }
        problem_list found = files_.copy(file, {.directory = directory_,
                                                .form = form_,
                                                .name = below.substr(slash + 1),
                                                .path = std::move(path)});
        std::ranges::move(found, std::back_inserter(problems));
    }

private:
    const tree_extraction& what_;
    file_extraction files_;
    io::path_handle directory_;  // the last one, by the path parent_
    new_file::form form_ = new_file::form::named;
    std::string parent_;
};

void tree_copy::make_directories() {
    for (std::size_t i = 0; i != what_.entries.size(); ++i) {
        const tree_entry& each = what_.entries[i];
        const std::string path = below(each);
        if (not is_host_path(path)) {
            directory_problems_.emplace(i, problem_of(each.path, "invalid file name on this system"));
        } else if (each.status.is_directory) {
            const std::string made = what_.target + '/' + path;
            std::error_code why;
            fs::create_directory(made, why);
            if (why)
                directory_problems_.emplace(i,
                                            problem_of_target(made, error(why.value(), "create directory")));
        }
    }
}

std::optional<tree_copy::group> tree_copy::next_group() {
    std::unique_lock guard(mutex_);
    front_moved_.wait(guard, [&] { return last_ or unreported_groups_ < unreported_groups_max; });
    if (last_ or next_ == what_.entries.size()) return std::nullopt;
    group taken{.first = next_, .end = next_};
    std::uint64_t bytes = 0;
    while (taken.end != what_.entries.size() and taken.end - taken.first < group_entries_max and
           bytes < group_bytes_max)
        bytes += what_.entries[taken.end++].status.size_bytes;
    next_ = taken.end;
    ++unreported_groups_;
    return taken;
}

void tree_copy::complete(const group& done, problem_list problems) {
    const std::scoped_lock guard(mutex_);
    reported_later_.emplace(done.first, std::pair(done.end, std::move(problems)));
    while (not last_ and not reported_later_.empty() and reported_later_.begin()->first == front_) {
        const auto next = reported_later_.extract(reported_later_.begin());
        report(next.mapped().second);
        front_ = next.mapped().first;
        --unreported_groups_;
    }
    front_moved_.notify_all();
}

void tree_copy::report(const problem_list& problems) {
    for (const object_problem& each : problems) {
        if (each.ends_the_command) {
            last_ = each;
            return;
        }
        skipped_.report(each);
    }
}

void tree_copy::work() {
    tree_worker worker(what_, progress_);
    while (const auto taken = next_group()) {
        problem_list problems;
        for (std::size_t i = taken->first; i != taken->end; ++i) {
            const tree_entry& each = what_.entries[i];
            if (const auto known = directory_problems_.find(i); known != directory_problems_.end())
                problems.push_back(known->second);
            else if (not each.status.is_directory)
                worker.copy(each, below(each), problems);
            // Later entries are not reported, and trying them would be useless.
            if (not problems.empty() and problems.back().ends_the_command) break;
        }
        complete(*taken, std::move(problems));
    }
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

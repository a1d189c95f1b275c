#include "sluice/cli/smb/remote_tree.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component

io::task<outcome<std::vector<remote_entry>>> entries_below(tree& in, std::string path) noexcept {
    std::vector<remote_entry> found;
    std::vector<std::string> directories{std::move(path)};
    std::size_t path_bytes = 0;
    while (not directories.empty()) {
        const std::string directory = std::move(directories.back());
        directories.pop_back();
        if (std::ranges::count(directory, '/') > static_cast<std::ptrdiff_t>(remote_depth_max))
            co_return failed(
                client_error::of_policy("list",
                                        "the directories are nested too deeply, and a link may lead "
                                        "back to a parent"));
        io::task<outcome<std::vector<directory_entry>>> listing = list(in, directory);
        auto listed = co_await std::move(listing);
        if (not listed) co_return failed(listed.error());
        path_bytes += std::transform_reduce(listed->begin(), listed->end(), listed->size() * directory.size(),
                                            std::plus<>(), [](const auto& each) { return each.name.size(); });
        if (listed->size() > remote_entries_max - found.size() or path_bytes > remote_path_bytes_max)
            co_return failed(client_error::of_policy(
                "list",
                "the tree has more than 4,194,304 entries, or 512 MiB of paths; copy its directories "
                "one by one"));
        for (directory_entry& each : *listed) {
            found.push_back({.path = joined_path(directory, each.name), .status = each.status});
            if (is_directory(each.status) and not is_link(each.status))
                directories.push_back(found.back().path);
        }
    }
    co_return std::move(found);
}

std::vector<remote_entry> entries_of(remote_share& share, const std::string& path, bool is_recursive) {
    const auto status = share.run(share.tree().status(path));
    if (not status) share.fail(path, status.error().message());
    std::vector<remote_entry> all{{.path = path, .status = *status}};
    if (not is_directory(*status)) return all;
    if (not is_recursive) share.fail(path, "is a directory; use -r to copy directories recursively");
    auto below = share.run(entries_below(share.tree(), path));
    if (not below) share.fail(path, below.error().message());
    std::ranges::move(*below, std::back_inserter(all));
    return all;
}

namespace {

struct shared_work {
    remote_share& share;
    std::size_t count;
    std::function<io::task<void>(std::size_t)>& what;
    std::size_t next = 0;
};

io::task<void> run_shared_work(shared_work& work) noexcept {
    while (work.next != work.count and not work.share.is_broken()) {
        io::task<void> doing = work.what(work.next++);
        co_await std::move(doing);
    }
}

}  // namespace

io::task<void> for_each_at_once(remote_share& share, std::size_t count,
                                std::function<io::task<void>(std::size_t)> what) noexcept {
    shared_work work{.share = share, .count = count, .what = what};
    io::task_group workers(share.loop());
    for (std::size_t i = 0; i != std::min(count, files_at_once); ++i)
        workers.spawn(run_shared_work(work));
    co_await workers.join();
}

}  // namespace sluice::cli

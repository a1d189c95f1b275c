#include "sluice/cli/smb/remote_tree.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>

namespace sluice::cli {

using namespace smb::client;  // NOLINT: the names of one component

namespace {

constexpr smb::wire::share_access share_all =
    smb::wire::share_access::read | smb::wire::share_access::write | smb::wire::share_access::remove;

struct object_contents {
    file_status status;                    // the object may be a link
    std::vector<directory_entry> entries;  // none for a link
};

// Lists through the open that has proved that the name is not a link.
io::task<outcome<object_contents>> contents_of_object(tree& in, std::string path) noexcept {
    const open_options how{
        .access = smb::wire::access_mask::list_directory | smb::wire::access_mask::read_attributes,
        .shares = share_all,
        .options = smb::wire::create_options::open_reparse_point};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(std::move(path), how);
    const auto object = co_await std::move(opening);
    if (not object) co_return failed(object.error());
    object_contents made{.status = (*object)->status(), .entries = {}};
    std::optional<client_error> met;
    if (not is_link(made.status)) {
        io::task<outcome<std::vector<directory_entry>>> listing = list(**object);
        auto listed = co_await std::move(listing);
        if (listed)
            made.entries = *std::move(listed);
        else
            met = listed.error();
    }
    io::task<outcome<file_status>> close_task = (*object)->co_close();
    (void)co_await std::move(close_task);
    if (met) co_return failed(*met);
    co_return std::move(made);
}

}  // namespace

io::task<outcome<file_status>> status_of_object(tree& in, std::string path) noexcept {
    const open_options how{.access = smb::wire::access_mask::read_attributes,
                           .shares = share_all,
                           .options = smb::wire::create_options::open_reparse_point};
    io::task<outcome<not_null_ptr<remote_file>>> opening = in.open(std::move(path), how);
    const auto object = co_await std::move(opening);
    if (not object) co_return failed(object.error());
    const file_status status = (*object)->status();
    io::task<outcome<file_status>> close_task = (*object)->co_close();
    (void)co_await std::move(close_task);
    co_return status;
}

io::task<outcome<std::vector<remote_entry>>> entries_below(tree& in, std::string path,
                                                           link_contents links) noexcept {
    constexpr std::size_t root = std::numeric_limits<std::size_t>::max();
    struct directory_to_list {
        std::string path;
        std::size_t position;  // in `found`
    };
    std::vector<remote_entry> found;
    std::vector<directory_to_list> directories{{.path = std::move(path), .position = root}};
    std::size_t path_bytes = 0;
    while (not directories.empty()) {
        const auto [directory, position] = std::move(directories.back());
        directories.pop_back();
        if (std::ranges::count(directory, '/') > static_cast<std::ptrdiff_t>(remote_depth_max))
            co_return failed(
                client_error::of_policy("list",
                                        "the directories are nested too deeply, and a link may lead "
                                        "back to a parent"));
        outcome<std::vector<directory_entry>> listed = std::vector<directory_entry>();
        if (links == link_contents::hidden and position != root) {
            io::task<outcome<object_contents>> listing = contents_of_object(in, directory);
            auto contents = co_await std::move(listing);
            if (not contents) co_return failed(contents.error());
            if (is_link(contents->status)) found[position].status = contents->status;
            listed = std::move(contents->entries);
        } else {
            io::task<outcome<std::vector<directory_entry>>> listing = list(in, directory);
            listed = co_await std::move(listing);
        }
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
                directories.push_back({.path = found.back().path, .position = found.size() - 1});
        }
    }
    co_return std::move(found);
}

std::vector<remote_entry> entries_of(remote_share& share, const std::string& path, bool is_recursive,
                                     link_contents links) {
    const auto status = share.run(links == link_contents::hidden ? status_of_object(share.tree(), path)
                                                                 : share.tree().status(path));
    if (not status) share.fail(path, status.error().message());
    std::vector<remote_entry> all{{.path = path, .status = *status}};
    if (not is_directory(*status) or (links == link_contents::hidden and is_link(*status))) return all;
    if (not is_recursive) share.fail(path, "is a directory; use -r to copy directories recursively");
    auto below = share.run(entries_below(share.tree(), path, links));
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

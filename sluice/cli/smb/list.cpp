// sluice ls, cat: shows directories and files of an SMB server.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/smb/remote_tree.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/cli/terminal_width.hpp"
#include "sluice/smb/client/share_list.hpp"

namespace sluice::cli {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::file_attributes;

struct list_arguments {
    remote_options remote;
    std::string url;
    bool is_long = false;
    bool is_recursive = false;
};

[[nodiscard]] std::string attribute_text(const file_status& status) {
    std::string text = "-----";
    if (is_directory(status)) text[0] = 'd';
    if (is_link(status)) text[0] = 'l';
    if (has(status.attributes, file_attributes::read_only)) text[1] = 'r';
    if (has(status.attributes, file_attributes::hidden)) text[2] = 'h';
    if (has(status.attributes, file_attributes::system)) text[3] = 's';
    if (has(status.attributes, file_attributes::archive)) text[4] = 'a';
    return text;
}

void print(const remote_entry& entry, std::size_t prefix, bool is_long) {
    const std::string text =
        terminal_text(entry.path.substr(prefix)) + (is_directory(entry.status) ? "/" : "");
    if (not is_long) {
        fmt::print("{}\n", text);
        return;
    }
    const auto seconds = std::chrono::system_clock::to_time_t(time_point_of(entry.status.last_write_time));
    fmt::print("{} {:>12} {} {}\n", attribute_text(entry.status), entry.status.end_of_file_bytes,
               local_time_text("%Y-%m-%d %H:%M", seconds), text);
}

[[nodiscard]] std::string_view type_text(std::uint32_t type) noexcept {
    switch (type & 0xFF) {
        case smb::wire::rpc_share::disk_tree:
            return "disk";
        case 1:
            return "printer";
        case smb::wire::rpc_share::ipc:
            return "pipe";
        default:
            return "other";
    }
}

void list_the_shares(remote_share& server, bool is_long) {
    auto shares = server.run(list_shares(server.session()));
    if (not shares) server.fail("", shares.error().message());
    std::ranges::sort(*shares, {}, &smb::wire::rpc_share::name);
    std::size_t width = 0;
    for (const auto& each : *shares)
        width = std::max(width, terminal_width(terminal_text(each.name)));
    for (const auto& each : *shares) {
        const std::string name = terminal_text(each.name);
        if (not is_long) {
            fmt::print("{}\n", name);
            continue;
        }
        const std::string gap(width - terminal_width(name), ' ');
        const std::string comment = terminal_text(each.comment);
        fmt::print("{:<7} {}{}{}\n", type_text(each.type), name, comment.empty() ? "" : gap + "  ", comment);
    }
}

void run_ls(const list_arguments& arguments) {
    smb_url url = url_operand(arguments.url, share_rule::optional);
    remote_share share(std::move(url), arguments.remote);
    if (share.url().share.empty()) return list_the_shares(share, arguments.is_long);
    const std::string& path = share.url().path;
    const auto status = share.run(share.tree().status(path));
    if (not status) share.fail(path, status.error().message());
    if (not is_directory(*status)) {
        const std::size_t slash = path.rfind('/');
        return print({.path = path, .status = *status}, slash + 1, arguments.is_long);
    }
    std::vector<remote_entry> entries;
    if (arguments.is_recursive) {
        auto below = share.run(entries_below(share.tree(), path));
        if (not below) share.fail(path, below.error().message());
        entries = std::move(*below);
    } else {
        const auto listed = share.run(list(share.tree(), path));
        if (not listed) share.fail(path, listed.error().message());
        for (const directory_entry& each : *listed)
            entries.push_back({.path = joined_path(path, each.name), .status = each.status});
    }
    std::ranges::sort(entries, {}, &remote_entry::path);
    for (const remote_entry& each : entries)
        print(each, path.empty() ? 0 : path.size() + 1, arguments.is_long);
}

io::task<transferred<std::uint64_t>> show(remote_share& share, const std::string& path) noexcept {
    const open_options how{.shares = smb::wire::share_access::read | smb::wire::share_access::write |
                                     smb::wire::share_access::remove,
                           .options = smb::wire::create_options::non_directory_file};
    io::task<outcome<not_null_ptr<remote_file>>> opening = share.tree().open(path, how);
    const auto remote = co_await std::move(opening);
    if (not remote) co_return std::unexpected(transfer_error{.remote = remote.error(), .local = {}});
    const byte_taker take = [](bytes_view bytes, std::uint64_t) -> result<void> {
        if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return {};
        return failure(error::last("write to standard output"));
    };
    const std::uint64_t size = (*remote)->status().end_of_file_bytes;
    io::task<transferred<std::uint64_t>> downloading = download(**remote, 0, size, take);
    auto end = co_await std::move(downloading);
    io::task<outcome<file_status>> close_task = (*remote)->co_close();
    (void)co_await std::move(close_task);
    // A file that grows in the meantime, such as a log, is shown up to its earlier length.
    if (end and *end < size)
        end = std::unexpected(transfer_error{
            .remote = {}, .local = error(EIO, "read: the file became shorter while it was read")});
    co_return end;
}

void run_cat(const list_arguments& arguments) {
    remote_share share(arguments.url, arguments.remote);
    const auto shown = share.run(show(share, share.url().path));
    if (not shown) share.fail(share.url().path, shown.error().message());
    if (std::fflush(stdout) != 0)
        share.fail(share.url().path, error::last("write to standard output").message());
}

}  // namespace

void add_ls(command_syntax app) {
    const auto arguments = std::make_shared<list_arguments>();
    const command_syntax ls = app.add_subcommand("ls", "list a directory, or the shares, of an SMB server")
                                  .group("Client")
                                  .example("sluice ls //server")
                                  .example("sluice ls -l smb://alice@server/photos");
    ls.add_option("URL", arguments->url, "smb://[[DOMAIN;]USER@]HOST[:PORT][/SHARE/PATH]").required();
    ls.add_flag("-l,--long", arguments->is_long,
                "show attributes, size, and modification time; of shares, type and comment");
    ls.add_flag("-R,--recursive", arguments->is_recursive, "list subdirectories recursively");
    add_remote_options(ls, arguments->remote);
    ls.on_call([arguments] { run_ls(*arguments); });
}

void add_cat(command_syntax app) {
    const auto arguments = std::make_shared<list_arguments>();
    const command_syntax cat = app.add_subcommand("cat", "write a file from an SMB server to standard output")
                                   .group("Client")
                                   .example("sluice cat smb://alice@server/logs/today | tail");
    add_remote_url(cat, arguments->url);
    add_remote_options(cat, arguments->remote);
    cat.on_call([arguments] { run_cat(*arguments); });
}

}  // namespace sluice::cli

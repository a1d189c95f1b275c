// sluice get: files and trees from a server.

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/smb/file_copier.hpp"
#include "sluice/io/file_status.hpp"
#include "sluice/io/xattr.hpp"
#include "sluice/vfs/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component

struct get_arguments {
    copy_options how;
    std::string url;
    std::string target;
};

struct fetched_file {
    remote_entry from;
    fs::path to;
};

// What a partial file is of: size and time of the original. Kept in an attribute of the file.
constexpr const char* origin_attribute = "user.sluice.origin";
using origin = std::array<le64, 2>;

[[nodiscard]] origin origin_of(const file_status& status) noexcept {
    return {le64(status.end_of_file_bytes), le64(status.last_write_time.ticks)};
}

class getter final : public file_copier {
public:
    getter(remote_share& share, const copy_options& how, std::vector<fetched_file> files,
           std::uint64_t total_bytes)
        : file_copier(share, how, total_bytes), files_(std::move(files)) {}

private:
    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].from.path;
    }

    [[nodiscard]] bool is_there_already(const fetched_file& file) const {
        const auto there = io::status_at({}, file.to.string());
        return there and there->size_bytes == file.from.status.end_of_file_bytes and
               there->modified == time_point_of(file.from.status.last_write_time);
    }

    // A whole file is renamed to its place, which must not throw a device or a pipe away.
    [[nodiscard]] static trouble why_not(const fs::path& to) {
        std::error_code why;
        const fs::file_status there = fs::status(to, why);
        if (not fs::exists(there) or fs::is_regular_file(there)) return std::nullopt;
        return to.string() +
               " is no file, and what is fetched would take its place; `sluice cat` writes into it";
    }

    // Opens the partial file, and says from where to go on.
    [[nodiscard]] result<std::uint64_t> open_part(const fetched_file& file, const fs::path& part,
                                                  io::file_handle& into) const {
        auto opened = io::file_handle::open({}, part.string(), io::mode::write, io::creation::if_needed,
                                            io::caching::all, io::open_flag::no_follow);
        if (not opened) return failure(opened.error());
        into = std::move(*opened);
        const origin now = origin_of(file.from.status);
        origin before{};
        const auto known = io::fetch_xattr(into, origin_attribute, std::as_writable_bytes(std::span(before)));
        const bool is_of_same = known and known->size() == sizeof before and before == now;
        if (how_.resumes and is_of_same) return into.maximum_extent();
        if (const auto emptied = into.truncate(0); not emptied) return failure(emptied.error());
        // Where the file system keeps none, --resume begins again.
        (void)io::store_xattr(into, origin_attribute, std::as_bytes(std::span(now)));
        return std::uint64_t{0};
    }

    [[nodiscard]] io::task<trouble> copy(std::size_t number) noexcept override {
        const fetched_file& file = files_[number];
        if (const trouble refused = why_not(file.to)) co_return refused;
        if (how_.resumes and is_there_already(file)) {
            progress_.add(file.from.status.end_of_file_bytes);
            co_return std::nullopt;
        }
        const open_options how{.shares = smb::wire::share_access::read | smb::wire::share_access::write |
                                         smb::wire::share_access::remove,
                               .options = smb::wire::create_options::non_directory_file};
        io::task<outcome<owned<remote_file>>> opening = share_.tree().open(file.from.path, how);
        const auto remote = co_await std::move(opening);
        if (not remote) co_return remote.error().message();
        io::task<trouble> fetching = fetch(file, **remote);
        trouble met = co_await std::move(fetching);
        io::task<outcome<file_status>> closing = (*remote)->co_close();
        (void)co_await std::move(closing);
        co_return met;
    }

    io::task<trouble> fetch(const fetched_file& file, remote_file& remote) noexcept {
        const fs::path part = file.to.string() + ".part";
        io::file_handle into;
        const auto from = open_part(file, part, into);
        if (not from) co_return from.error().message();
        progress_.name(file.from.path);
        progress_.add(*from);
        const byte_taker take = [&](bytes_view bytes, std::uint64_t offset) -> result<void> {
            const auto wrote = into.write(io::io_request<io::const_bytes_type>{bytes.span(), offset});
            if (not wrote) return failure(wrote.error());
            progress_.add(bytes.size());
            return {};
        };
        io::task<transferred<std::uint64_t>> downloading =
            download(remote, *from, remote.status().end_of_file_bytes, take);
        const auto end = co_await std::move(downloading);
        if (not end) co_return end.error().message();
        if (how_.verifies) {
            io::task<trouble> comparing = compare(remote, into, *end, "it changed while it was read");
            if (auto difference = co_await std::move(comparing)) co_return difference;
        }
        (void)io::remove_xattr(into, origin_attribute);
        const auto timed =
            io::set_times(into, {.accessed = {}, .modified = time_point_of(remote.status().last_write_time)});
        if (not timed) co_return timed.error().message();
        if (const auto closed = into.close(); not closed) co_return closed.error().message();
        std::error_code why;
        fs::rename(part, file.to, why);
        if (why) co_return file.to.string() + ": " + why.message();
        co_return std::nullopt;
    }

    std::vector<fetched_file> files_;
};

// Here a backslash is a letter like others, but a dot that was mapped must not make a name that leads
// elsewhere.
[[nodiscard]] bool is_host_name(const std::string& name) noexcept {
    return not name.empty() and name != "." and name != ".." and not name.contains('/') and
           not name.contains('\0');
}

// The host's spelling of what the server names, below `target`.
[[nodiscard]] fs::path host_path_below(remote_share& share, const fs::path& target, const std::string& path) {
    fs::path made = target;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        std::string storage;
        const std::string name(vfs::host_name(path.substr(at, slash - at), storage));
        if (not is_host_name(name)) share.fail(path, "its name would lead elsewhere on this machine");
        made /= name;
        at = slash + 1;
    }
    return made;
}

[[nodiscard]] std::string last_name_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

void run_get(const get_arguments& arguments) {
    remote_share share("get", arguments.url, arguments.how.remote);
    const std::string& path = share.url().path;
    const std::vector<remote_entry> entries = entries_of(share, path, arguments.how.is_recursive);
    const std::string own_name = path.empty() ? share.url().share : last_name_of(path);
    fs::path target = arguments.target.empty() ? fs::path(".") : fs::path(arguments.target);
    const bool is_tree = is_folder(entries.front().status);
    if (fs::is_directory(target)) target = host_path_below(share, target, own_name);
    std::vector<fetched_file> files;
    std::uint64_t total = 0;
    for (const remote_entry& each : entries) {
        const std::string below = is_tree and each.path.size() > path.size()
                                      ? each.path.substr(path.empty() ? 0 : path.size() + 1)
                                      : std::string();
        const fs::path to = host_path_below(share, target, below);
        std::error_code why;
        if (is_link(each.status)) {
            share.complain(each.path, "left out: a link the server does not follow");
        } else if (is_folder(each.status)) {
            fs::create_directories(to, why);
            if (why) share.fail(each.path, to.string() + ": " + why.message());
        } else {
            files.push_back({.from = each, .to = to});
            total += each.status.end_of_file_bytes;
        }
    }
    const std::size_t count = files.size();
    getter(share, arguments.how, std::move(files), total).run(count);
}

}  // namespace

void add_get(command_syntax app) {
    const auto arguments = std::make_shared<get_arguments>();
    const command_syntax get = app.add_subcommand("get", "copy files from an SMB server");
    get.add_option("URL", arguments->url, "smb://[user@]host[:port]/share/path").required();
    get.add_option("TARGET", arguments->target, "where to; by default here, under its name");
    get.add_flag("-r,--recursive", arguments->how.is_recursive, "folders with all they hold");
    get.add_flag("--resume", arguments->how.resumes,
                 "leave out what is here, go on where a file was cut off");
    get.add_flag("--checksum", arguments->how.verifies, "read everything again and compare");
    add_remote_options(get, arguments->how.remote);
    get.on_call([arguments] { run_get(*arguments); });
}

}  // namespace sluice::cli

// sluice put: files and trees to a server.

#include <fmt/core.h>

#include <filesystem>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/smb/file_copier.hpp"
#include "sluice/io/file_status.hpp"
#include "sluice/vfs/host_name.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

struct put_arguments {
    copy_options how;
    std::vector<std::string> operands;
};

struct given_file {
    fs::path from;
    std::string to;
    std::uint64_t bytes = 0;
};

// Files shorter than this are sent again rather than resumed.
constexpr std::uint64_t resumed_bytes_min = transfer_window_bytes;

class putter final : public file_copier {
public:
    putter(remote_share& share, const copy_options& how, std::vector<given_file> files,
           std::uint64_t total_bytes)
        : file_copier(share, how, total_bytes), files_(std::move(files)) {}

private:
    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].to;
    }

    [[nodiscard]] io::task<trouble> copy(std::size_t number) noexcept override {
        const given_file& file = files_[number];
        auto source = io::file_handle::open({}, file.from.string());
        if (not source) co_return source.error().message();
        const auto status = io::status_of(*source);
        if (not status) co_return status.error().message();
        const auto modified = smb::wire::filetime_of(status->modified);
        if (how_.resumes) {
            io::task<outcome<file_status>> asking = share_.tree().status(file.to);
            const auto there = co_await std::move(asking);
            if (there and there->end_of_file_bytes == status->size_bytes and
                there->last_write_time == modified) {
                progress_.add(status->size_bytes);
                co_return std::nullopt;
            }
        }
        progress_.name(file.to);
        const open_options how{.access = smb::wire::file_generic_read | smb::wire::file_generic_write |
                                         smb::wire::access_mask::delete_object,
                               .shares = smb::wire::share_access::none,
                               .disposition = how_.resumes ? smb::wire::create_disposition::open_if
                                                           : smb::wire::create_disposition::overwrite_if,
                               .options = smb::wire::create_options::non_directory_file};
        io::task<outcome<owned<remote_file>>> opening = share_.tree().open(file.to + ".part", how);
        const auto remote = co_await std::move(opening);
        if (not remote) co_return remote.error().message();
        io::task<trouble> sending =
            send(file, *source, **remote, {.bytes = status->size_bytes, .modified = modified});
        trouble met = co_await std::move(sending);
        io::task<outcome<file_status>> closing = (*remote)->co_close();
        const auto closed = co_await std::move(closing);
        if (not met and not closed) met = closed.error().message();
        co_return met;
    }

    struct original {
        std::uint64_t bytes;
        smb::wire::filetime modified;
    };

    // Where to go on. While a file is partial on the server, its time of creation says of which original.
    static io::task<outcome<std::uint64_t>> begin(remote_file& remote, original of) noexcept {
        const file_status& there = remote.status();
        if (there.end_of_file_bytes > transfer_window_bytes and there.end_of_file_bytes <= of.bytes and
            there.creation_time == of.modified)
            co_return there.end_of_file_bytes - transfer_window_bytes;
        if (there.end_of_file_bytes != 0) {
            io::task<outcome<void>> emptying = remote.set_size(0);
            const auto emptied = co_await std::move(emptying);
            if (not emptied) co_return failed(emptied.error());
        }
        if (of.bytes > resumed_bytes_min) {
            io::task<outcome<void>> marking = remote.set_times({.created = of.modified});
            (void)co_await std::move(marking);  // a server that cannot has the file sent from the beginning
        }
        co_return std::uint64_t{0};
    }

    io::task<trouble> send(const given_file& file, io::file_handle& source, remote_file& remote,
                           original of) noexcept {
        io::task<outcome<std::uint64_t>> beginning = begin(remote, of);
        const auto from = co_await std::move(beginning);
        if (not from) co_return from.error().message();
        progress_.add(*from);
        const byte_giver give = [&](mutable_bytes into, std::uint64_t offset) -> result<std::size_t> {
            const auto got = source.read(io::io_request<io::bytes_type>{into.span(), offset});
            if (not got) return failure(got.error());
            progress_.add(got->size());
            return got->size();
        };
        io::task<transferred<std::uint64_t>> uploading = upload(remote, *from, of.bytes, give);
        const auto end = co_await std::move(uploading);
        if (not end) co_return end.error().message();
        if (how_.verifies) {
            io::task<trouble> comparing =
                compare(remote, source, *end, "the server gives back less than it was given");
            if (auto difference = co_await std::move(comparing)) co_return difference;
        }
        io::task<outcome<void>> timing = remote.set_times({.written = of.modified});
        const auto timed = co_await std::move(timing);
        if (not timed) co_return timed.error().message();
        io::task<outcome<void>> renaming = remote.rename(file.to, true);
        const auto renamed = co_await std::move(renaming);
        if (not renamed) co_return renamed.error().message();
        co_return std::nullopt;
    }

    std::vector<given_file> files_;
};

[[nodiscard]] std::string shown(const std::string& name) {
    std::string storage;
    return std::string(vfs::shown_name(name, storage));
}

void make_folder(remote_share& share, const std::string& path) {
    if (path.empty()) return;
    const auto made = share.run(share.tree().make_folder(path));
    if (not made and made.error().status() != nt_status::object_name_collision)
        share.fail(path, made.error().message());
}

// What is to be sent of one operand.
class gathering {
public:
    gathering(remote_share& share, bool is_recursive) : share_(share), is_recursive_(is_recursive) {}

    void add(const fs::path& from, const std::string& to) {
        std::error_code why;
        const fs::file_status status = fs::status(from, why);
        if (not fs::exists(status)) share_.fail(to, from.string() + ": there is no such file or folder");
        if (fs::is_directory(status)) return add_folder(from, to);
        add_file(from, to);
    }

    std::vector<given_file> files;
    std::uint64_t total_bytes = 0;

private:
    void add_file(const fs::path& from, const std::string& to) {
        std::error_code why;
        const std::uint64_t bytes = fs::file_size(from, why);
        if (why) share_.fail(to, from.string() + ": " + why.message());
        files.push_back({.from = from, .to = to, .bytes = bytes});
        total_bytes += bytes;
    }

    void add_folder(const fs::path& from, const std::string& to) {
        if (not is_recursive_)
            share_.fail(to, from.string() + ": is a folder; -r takes folders with all they hold");
        make_folder(share_, to);
        for (const auto& each : fs::directory_iterator(from)) {
            const std::string below = joined_path(to, shown(each.path().filename().string()));
            if (each.is_symlink() or not(each.is_directory() or each.is_regular_file()))
                share_.complain(below, each.path().string() + ": left out, neither file nor folder");
            else if (each.is_directory())
                add_folder(each.path(), below);
            else
                add_file(each.path(), below);
        }
    }

    remote_share& share_;
    bool is_recursive_;
};

[[nodiscard]] std::string last_name_of(const std::string& source) {
    const fs::path normal = fs::absolute(source).lexically_normal();
    return shown((normal.has_filename() ? normal : normal.parent_path()).filename().string());
}

void run_put(const put_arguments& arguments) {
    remote_share share("put", arguments.operands.back(), arguments.how.remote);
    const std::string& path = share.url().path;
    const auto there = share.run(share.tree().status(path));
    if (not there and there.error().is_of_connection()) share.fail(path, there.error().message());
    const bool is_into = there and is_folder(*there);
    if (arguments.operands.size() > 2 and not is_into)
        share.fail(path, "is no folder to put several files into");
    gathering gathered(share, arguments.how.is_recursive);
    for (std::size_t i = 0; i + 1 != arguments.operands.size(); ++i) {
        const std::string& source = arguments.operands[i];
        gathered.add(source, is_into ? joined_path(path, last_name_of(source)) : path);
    }
    const std::size_t count = gathered.files.size();
    putter(share, arguments.how, std::move(gathered.files), gathered.total_bytes).run(count);
}

}  // namespace

void add_put(command_syntax app) {
    const auto arguments = std::make_shared<put_arguments>();
    const command_syntax put = app.add_subcommand("put", "copy files to an SMB server");
    put.add_option("SOURCE... URL", arguments->operands, "what to copy, and last where to: smb://…")
        .required()
        .expected(2, -1);
    put.add_flag("-r,--recursive", arguments->how.is_recursive, "folders with all they hold");
    put.add_flag("--resume", arguments->how.resumes,
                 "leave out what is there, go on where a file was cut off");
    put.add_flag("--checksum", arguments->how.verifies, "read everything back and compare");
    add_remote_options(put, arguments->how.remote);
    put.on_call([arguments] { run_put(*arguments); });
}

}  // namespace sluice::cli

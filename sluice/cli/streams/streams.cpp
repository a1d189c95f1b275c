// sluice streams: imports named streams from Samba, and checks where large streams are stored.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sluice/base/clock.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/host/stream/samba_import.hpp"
#include "sluice/vfs/host/stream/stream_check.hpp"
#include "sluice/vfs/host/stream/stream_store_rules.hpp"

namespace sluice::cli {
namespace {

struct opened_directory {
    std::unique_ptr<io::io_multiplexer> loop;
    std::unique_ptr<vfs::host_volume> volume;
};

[[nodiscard]] opened_directory open_directory(const std::string& path,
                                              const vfs::host_volume_options& options) {
    auto loop = io::best_available();
    if (not loop) fail(loop.error().message());
    auto volume = vfs::host_volume::open(**loop, path, options);
    if (not volume) fail(volume.error().message());
    if (not(*volume)->features().has_streams)
        fail(fmt::format("{}: the file system has no extended attributes", path));
    if ((*volume)->stream_problem())
        fail(fmt::format("{}: {}", options.streams_root.empty() ? path : options.streams_root,
                         (*volume)->explain_stream_problem()));
    return {.loop = *std::move(loop), .volume = *std::move(volume)};
}

void report(const std::string& line) {
    fmt::print("{}\n", terminal_text(line));
}

[[nodiscard]] std::string counted(std::uint64_t number, const char* one, const char* several) {
    return fmt::format("{} {}", number, number == 1 ? one : several);
}

// --- import

struct import_arguments {
    std::string directory;
    std::string depot;
    std::string store;
    std::string extension_prefix{vfs::usual_samba_extension_prefix};
    bool any_device = false;
    bool any_owner = false;
    bool unmarked = false;
    bool removes = false;
};

[[nodiscard]] bool contains(const std::string& outer, const std::string& inner) {
    namespace fs = std::filesystem;
    std::error_code unknown;
    const fs::path parent = fs::canonical(outer, unknown);
    const fs::path child = fs::canonical(inner, unknown);
    return not unknown and std::ranges::mismatch(parent, child).in1 == parent.end();
}

// The directory with the store for large streams: the one that the server uses. It is the outermost
// of its shares, which only the user knows.
[[nodiscard]] std::string store_for(const import_arguments& arguments) {
    const std::string& directory = arguments.directory;
    if (not arguments.store.empty()) {
        if (not contains(arguments.store, directory))
            fail(fmt::format("--store: '{}' does not contain '{}'", arguments.store, directory));
        return arguments.store;
    }
    const std::string outer = vfs::outer_store_of(directory);
    if (outer.empty()) return {};
    fail(fmt::format(
        "{0}: is in '{1}', which has a store of large streams; if one server shares both, it uses that "
        "store: add --store '{1}', otherwise --store '{0}'",
        directory, outer));
}

// These would do nothing.
void require_depot(const import_arguments& arguments) {
    const char* const option = arguments.any_device  ? "--any-device"
                               : arguments.any_owner ? "--any-owner"
                               : arguments.unmarked  ? "--unmarked"
                                                     : nullptr;
    if (option == nullptr) return;
    fail(fmt::format(
        "{}: is for streams in a depot, and '{}' has no directory .streams; name the depot with --depot",
        option, arguments.directory));
}

void print(const vfs::samba_import_result& done) {
    fmt::print("imported {}; {} imported before\n", counted(done.imported, "stream", "streams"),
               done.present);
    if (done.conflicts != 0)
        fmt::print("not imported: {} with other content\n", counted(done.conflicts, "stream", "streams"));
    if (done.failed != 0) fmt::print("failed: {}\n", counted(done.failed, "stream", "streams"));
    if (done.foreign != 0)
        fmt::print("{} not to the owner of the file; if all users are trusted, see --any-owner\n",
                   counted(done.foreign, "stream belongs", "streams belong"));
    if (done.incomplete != 0)
        fmt::print("{} incomplete; see --ext-prefix\n", counted(done.incomplete, "stream is", "streams are"));
    if (done.unmatched != 0)
        fmt::print("{} in the depot without a matching file; see --any-device\n",
                   counted(done.unmatched, "directory", "directories"));
    if (done.unmarked != 0)
        fmt::print("{} in the depot for a file without Samba's mark; see --unmarked\n",
                   counted(done.unmarked, "directory", "directories"));
    if (done.unreadable != 0)
        fmt::print("incomplete: {} could not be read\n",
                   counted(done.unreadable, "file or directory", "files or directories"));
    if (done.mounts != 0)
        fmt::print("incomplete: {} not searched\n",
                   counted(done.mounts, "other file system was", "other file systems were"));
}

[[nodiscard]] exit_code import_samba(const import_arguments& arguments) {
    if (arguments.extension_prefix.empty()) refuse_usage("invalid value '' for --ext-prefix: use a prefix");
    const opened_directory directory =
        open_directory(arguments.directory, {.streams_root = store_for(arguments)});
    vfs::samba_import importing(*directory.volume, *directory.loop,
                                {.depot = arguments.depot,
                                 .any_device = arguments.any_device,
                                 .any_owner = arguments.any_owner,
                                 .needs_mark = not arguments.unmarked,
                                 .removes_sources = arguments.removes,
                                 .extension_prefix = arguments.extension_prefix},
                                report);
    if (const auto problem = importing.open_depot())
        fail(arguments.depot.empty() ? fmt::format("{}/{}", arguments.directory, *problem) : *problem);
    if (not importing.has_depot()) require_depot(arguments);
    const auto done = importing.run();
    print(done);
    return done.is_complete() ? exit_code::success : exit_code::failure;
}

// --- check

struct check_arguments {
    std::string directory;
    bool repairs = false;
    bool skips_unreadable = false;
    std::optional<unsigned> days_kept;
};

constexpr unsigned usual_days_kept = 30;

void refuse_without_repair(const check_arguments& arguments) {
    if (arguments.repairs) return;
    if (arguments.days_kept) refuse_usage("--keep needs --repair: only a repair removes streams");
    if (arguments.skips_unreadable)
        refuse_usage("--skip-unreadable needs --repair: only a repair moves and removes streams");
}

void print_result(const vfs::stream_check_result& found, const check_arguments& arguments) {
    fmt::print("{} with large streams\n", counted(found.referring_files, "file", "files"));
    if (found.copies != 0)
        fmt::print("{} copied; the first change of a stream copies all streams\n",
                   counted(found.copies, "file", "files"));
    if (found.lost != 0)
        fmt::print("{} in .sluice-streams/lost\n", counted(found.lost, "directory", "directories"));
    if (found.split != 0)
        fmt::print("{} of streams in two stores, which is not repaired\n",
                   counted(found.split, "directory", "directories"));
    if (found.strays != 0)
        fmt::print("{} in stores that are not a part of them\n", counted(found.strays, "object", "objects"));
    if (found.unreadable != 0)
        fmt::print("incomplete: {} could not be read; {}\n",
                   counted(found.unreadable, "file or directory", "files or directories"),
                   arguments.skips_unreadable ? "their streams may be in lost"
                                              : "nothing is moved to lost without --skip-unreadable");
    if (arguments.repairs)
        fmt::print("repaired {}, failed {}\n", found.repaired, found.failed);
    else if (found.problems() != 0)
        fmt::print("{}; run with --repair\n", counted(found.problems(), "problem", "problems"));
}

[[nodiscard]] exit_code check(const check_arguments& arguments) {
    refuse_without_repair(arguments);
    const opened_directory directory =
        open_directory(arguments.directory, {.read_only = not arguments.repairs});
    const system_clock_source clock;
    vfs::stream_check checking(*directory.volume,
                               {.repairs = arguments.repairs,
                                .skips_unreadable = arguments.skips_unreadable,
                                .lost_kept = std::chrono::days(arguments.days_kept.value_or(usual_days_kept)),
                                .now = vfs::time_of(clock.utc_now())},
                               report);
    const auto done = checking.run();
    if (not done) fail(done.error().message());
    print_result(*done, arguments);
    const bool is_incomplete = done->unreadable != 0 and not arguments.skips_unreadable;
    if (is_incomplete or done->failed != 0 or done->split != 0 or done->strays != 0)
        return exit_code::failure;
    return done->problems() != 0 and not arguments.repairs ? exit_code::damaged : exit_code::success;
}

void add_import(command_syntax streams) {
    const auto arguments = std::make_shared<import_arguments>();
    const command_syntax command = streams.add_subcommand(
        "import", "import the streams that Samba has stored with streams_xattr or streams_depot");
    command.add_option("DIRECTORY", arguments->directory, "the root of the share").required();
    command
        .add_option("--depot", arguments->depot,
                    "directory of streams_depot [default: DIRECTORY/.streams, if it exists]")
        .value_name("DIR");
    command.add_flag("--any-device", arguments->any_device,
                     "match streams of the depot by inode only; the number of the device may have changed");
    command.add_flag("--any-owner", arguments->any_owner,
                     "import streams of the depot that belong to another account than their file, too");
    command
        .add_option("--ext-prefix", arguments->extension_prefix,
                    "streams_xattr:ext_prefix, if Samba has it [default: user.DosStreamExt.]")
        .value_name("PREFIX");
    command
        .add_option("--store", arguments->store,
                    "the outermost share that contains DIRECTORY, if shares are nested")
        .value_name("DIR");
    command.add_flag("--unmarked", arguments->unmarked,
                     "import for files without Samba's mark, too (streams_depot:check_valid = no)");
    command.add_flag("--remove", arguments->removes, "remove Samba's streams after they are imported");
    command.example("sluice streams import /srv/photos");
    command.on_call([arguments] {
        if (const exit_code code = import_samba(*arguments); code != exit_code::success) leave(code);
    });
}

void add_check(command_syntax streams) {
    const auto arguments = std::make_shared<check_arguments>();
    const command_syntax command =
        streams.add_subcommand("check", "compare files with the store of their large streams")
            .further_status("4 problems that --repair repairs");
    command.add_option("DIRECTORY", arguments->directory, "the root of the share").required();
    command.add_flag("--repair", arguments->repairs,
                     "move streams without a file to 'lost', and give restored files their streams");
    command
        .add_option("--keep", arguments->days_kept,
                    "with --repair: remove streams that have been in 'lost' for this number of days "
                    "[default: 30]")
        .value_name("DAYS")
        .between(0U, 36500U);
    command.add_flag("--skip-unreadable", arguments->skips_unreadable,
                     "with --repair: also move streams to 'lost' if files or directories cannot be read");
    command.example("sluice streams check --repair /srv/photos");
    command.on_call([arguments] {
        if (const exit_code code = check(*arguments); code != exit_code::success) leave(code);
    });
}

}  // namespace

void add_streams(command_syntax app) {
    const command_syntax streams =
        app.add_subcommand("streams", "import and check named streams of shared directories")
            .group("Server")
            .example("sluice streams import /srv/photos");
    streams.require_subcommands(1);
    add_import(streams);
    add_check(streams);
}

}  // namespace sluice::cli

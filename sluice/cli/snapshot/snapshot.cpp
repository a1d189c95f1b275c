// sluice snapshot: creates, lists and deletes the snapshots of a directory that is shared.

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/vfs/host/host_snapshots.hpp"
#include "sluice/vfs/host/snapshot_edits.hpp"

namespace sluice::cli {
namespace {

struct snapshot_arguments {
    std::string directory;
    std::string pattern = ".snapshots/%Y-%m-%d_%H%M%S";
    std::vector<std::string> names;
};

[[nodiscard]] vfs::snapshot_pattern pattern_of(const snapshot_arguments& arguments) {
    auto parsed = vfs::snapshot_pattern::parse(arguments.pattern);
    ENSURE(parsed.has_value(), "checked when the options were read");
    return *std::move(parsed);
}

void create(const snapshot_arguments& arguments) {
    const auto now = std::chrono::floor<std::chrono::seconds>(system_clock_source().utc_now());
    const auto made = vfs::create_snapshot(arguments.directory, pattern_of(arguments), now);
    if (not made) fail(made.error());
    fmt::print("{}\n", terminal_text(*made));
}

void list(const snapshot_arguments& arguments) {
    const vfs::snapshot_pattern pattern = pattern_of(arguments);
    auto loop = io::best_available();
    if (not loop) fail(loop.error().message());
    const auto opened = vfs::host_snapshots::open(**loop, arguments.directory, pattern, {});
    if (not opened)
        fail(about(vfs::directory_of_snapshots(arguments.directory, pattern), opened.error()) +
             std::string(vfs::remedy_for_snapshots(opened.error())));
    const auto times = (*opened)->list();
    if (not times) fail(about(vfs::directory_of_snapshots(arguments.directory, pattern), times.error()));
    for (const vfs::snapshot_time when : *times) {
        const auto name = pattern.name_of(when);
        ENSURE(name.has_value(), "a time that is listed has a name");
        fmt::print("{} UTC  {}\n", utc_text("%Y-%m-%d %H:%M:%S", std::chrono::system_clock::to_time_t(when)),
                   terminal_text(*name));
    }
}

void remove(const snapshot_arguments& arguments) {
    const vfs::snapshot_pattern pattern = pattern_of(arguments);
    for (const std::string& name : arguments.names)
        if (const auto done = vfs::delete_snapshot(arguments.directory, pattern, name); not done)
            fail(done.error());
}

[[nodiscard]] command_syntax add_command(command_syntax snapshot, const char* name, const char* description,
                                         const std::shared_ptr<snapshot_arguments>& arguments) {
    const command_syntax command = snapshot.add_subcommand(name, description);
    command.add_option("DIRECTORY", arguments->directory, "the root of the share").required();
    command
        .add_option("--pattern", arguments->pattern,
                    "the --previous-versions of the server, in UTC [default: .snapshots/%Y-%m-%d_%H%M%S]")
        .check(validate_previous_versions)
        .value_name("PATTERN");
    return command;
}

}  // namespace

void add_snapshot(command_syntax app) {
    const command_syntax snapshot =
        app.add_subcommand("snapshot",
                           "create, list and delete snapshots, which clients see as previous versions")
            .group("Server")
            .example("sluice snapshot create /srv/photos");
    snapshot.require_subcommands(1);
    const auto arguments = std::make_shared<snapshot_arguments>();
    const command_syntax creating =
        add_command(snapshot, "create",
                    "create a read-only snapshot of a btrfs subvolume or a ZFS file system", arguments);
    creating.example("sluice snapshot create /srv/photos");
    creating.on_call([arguments] { create(*arguments); });
    const command_syntax listing = add_command(
        snapshot, "list", "list the snapshots that match the pattern, the latest first", arguments);
    listing.example("sluice snapshot list --pattern .zfs/snapshot/%Y-%m-%d_%H%M /tank/photos");
    listing.on_call([arguments] { list(*arguments); });
    const command_syntax deleting =
        add_command(snapshot, "delete", "delete snapshots by their names", arguments);
    deleting.add_option("NAME", arguments->names, "the name of a snapshot, as 'list' prints it (repeatable)")
        .required();
    deleting.example("sluice snapshot delete /srv/photos 2026-11-28_120000");
    deleting.on_call([arguments] { remove(*arguments); });
}

}  // namespace sluice::cli

// sluice fat check, repair: checks whether a volume is consistent, and repairs it.

#include "sluice/fat/check/check.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/fat/build_time.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/fat/image/undo_file.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/fat/check/repair.hpp"

namespace sluice::cli {
namespace {

struct check_arguments {
    image_options how;
    std::string image;
    std::string boot;
    std::string undo;
    bool wants_json = false;
};

fat::code_page page_of(const check_arguments& arguments) {
    return mount_options_of(arguments.how).value().page;
}

fat::boot_source boot_of(const check_arguments& arguments) {
    if (arguments.boot == "first") return fat::boot_source::first;
    return arguments.boot == "backup" ? fat::boot_source::backup : fat::boot_source::evidence;
}

void print(const fat::check_report& report, bool as_json) {
    if (as_json) return fmt::print("{}", json_of(report));
    // Names come from the image: they must neither control the terminal nor look like
    // a line of the report.
    fat::check_report shown = report;
    for (fat::problem& each : shown.problems) {
        each.path = terminal_text(each.path);
        each.other = terminal_text(each.other);
    }
    fmt::print("{}", text_of(shown));
}

opened_image open_image(const check_arguments& arguments, image_use use) {
    return {parse_image(arguments.image), use, arguments.how, [&](const std::string& why) {
                fat::check_report report;
                report.refusal = terminal_text(why);
                print(report, arguments.wants_json);
                leave(exit_code::damaged);
            }};
}

// An unreadable FAT does not mean that the volume is damaged. Programs get an object in this case
// too.
fat::check_report check_or_fail(opened_image& image, const check_arguments& arguments) {
    auto report = fat::check(image.volume(), {.page = page_of(arguments), .boot = boot_of(arguments)});
    if (not report and arguments.wants_json) fmt::print("{}", fat::json_of_failure(report.error()));
    return value_or_fail(std::move(report), arguments.image);
}

void run_check(const check_arguments& arguments) {
    bool is_consistent = false;
    {
        opened_image image = open_image(arguments, image_use::read);
        const fat::check_report report = check_or_fail(image, arguments);
        print(report, arguments.wants_json);
        is_consistent = report.is_consistent();
    }
    if (not is_consistent) leave(exit_code::damaged);
}

fat::repair_options repair_options_of(const check_arguments& arguments) {
    const build_moment when = build_now();
    const fat::packed_time now = fat::pack(when.time, when.zone);
    return {.page = page_of(arguments), .date = now.date, .time = now.time, .boot = boot_of(arguments)};
}

void explain_doubt(const fat::check_report& report, const std::string& image) {
    if (not report.has(fat::problem_kind::boot_sector_doubtful)) return;
    print_error(fmt::format(
        "{0}: nothing was changed, because the boot sector may be wrong, and a repair based on a wrong boot "
        "sector destroys files; if it is right, run 'sluice fat repair --boot-sector first {0}'",
        image));
}

fat::repair_report repair_image(opened_image& image, fat::check_report found,
                                const check_arguments& arguments) {
    std::optional<undo_file> undo;
    if (not arguments.undo.empty() and found.shape) undo.emplace(arguments.undo, image, *found.shape);
    auto report =
        fat::repair(undo ? undo->volume() : image.volume(), std::move(found), repair_options_of(arguments));
    if (not report and undo)
        fail(fmt::format("{}; run 'sluice fat undo {} {}' to restore the image",
                         fat_message(report.error(), arguments.image), arguments.image, arguments.undo));
    fat::repair_report done = value_or_fail(std::move(report), arguments.image);
    if (undo and undo->finish() and not arguments.wants_json)
        fmt::print("'sluice fat undo {} {}' restores the image as it was\n", terminal_text(arguments.image),
                   terminal_text(arguments.undo));
    return done;
}

void run_repair(const check_arguments& arguments) {
    if (not arguments.undo.empty() and not arguments.how.overlay.empty())
        refuse_usage(
            "--undo and --overlay exclude each other; 'sluice fat discard' undoes changes in an overlay");
    bool is_consistent = false;
    {
        opened_image image = open_image(arguments, image_use::write);
        fat::check_report found = check_or_fail(image, arguments);
        // Before anything is written.
        if (not arguments.wants_json) fmt::print("{}", boot_text_of(found));
        (void)std::fflush(stdout);
        const auto report = repair_image(image, std::move(found), arguments);
        if (not arguments.wants_json)
            for (const std::string& action : report.actions)
                fmt::print("repaired: {}\n", terminal_text(action));
        print(report.after, arguments.wants_json);
        explain_doubt(report.after, arguments.image);
        is_consistent = report.after.is_consistent();
    }
    if (not is_consistent) leave(exit_code::damaged);
}

}  // namespace

void add_fat_check(command_syntax fat) {
    const auto add = [&](const char* name, const char* what, const char* overlay_help, const char* example,
                         auto run) {
        const auto arguments = std::make_shared<check_arguments>();
        const command_syntax command =
            fat.add_subcommand(name, what).example(example).further_status("4 volume damaged");
        add_overlay_option(command, arguments->how, overlay_help);
        add_code_page_option(command, arguments->how);
        command.add_option("IMAGE", arguments->image, "image file, or IMAGE@N for its partition N")
            .required();
        command
            .add_option("--boot-sector", arguments->boot,
                        "use the first boot sector, or its backup [default: the one that matches the volume]")
            .value_name("WHICH")
            .one_of(std::vector<std::string>{"first", "backup"});
        command.add_flag("--json", arguments->wants_json, "print the report as a JSON object");
        command.on_call([arguments, run] { run(*arguments); });
        return std::pair(command, arguments);
    };
    add("check", "check a volume for damage, without changing it", "check IMAGE with the changes in FILE",
        "sluice fat check --json disk.img", run_check);
    const auto [repair, arguments] = add("repair", "repair a damaged volume; reachable files are kept",
                                         "store changes in FILE; do not modify the image",
                                         "sluice fat repair --undo card.undo card.img", run_repair);
    repair.add_option("--undo", arguments->undo, "save the original bytes first, for 'sluice fat undo'")
        .value_name("FILE");
}

}  // namespace sluice::cli

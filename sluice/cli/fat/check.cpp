// sluice fat check, repair: whether a volume is sound, and making it so.

#include "sluice/fat/check.hpp"

#include <fmt/core.h>

#include <memory>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/fat/build_time.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/image.hpp"
#include "sluice/cli/terminal_text.hpp"
#include "sluice/fat/repair.hpp"

namespace sluice::cli {
namespace {

struct check_arguments {
    image_options how;
    std::string image;
    bool wants_json = false;
};

fat::code_page page_of(const check_arguments& arguments) {
    return mount_options_of(arguments.how).value().page;
}

void print(const fat::check_report& report, bool as_json) {
    if (as_json) return fmt::print("{}", json_of(report));
    // Names come from the image: they must neither control the terminal nor look like a line of the report.
    fat::check_report shown = report;
    for (fat::problem& each : shown.problems) {
        each.path = terminal_text(each.path);
        each.other = terminal_text(each.other);
    }
    fmt::print("{}", text_of(shown));
}

void run_check(const check_arguments& arguments) {
    bool is_sound = false;
    {
        opened_image image(parse_image(arguments.image), image_use::read, arguments.how);
        const auto report =
            value_or_fail(fat::check(image.volume(), {.page = page_of(arguments)}), arguments.image);
        print(report, arguments.wants_json);
        is_sound = report.is_sound();
    }
    if (not is_sound) leave(exit_code::damaged);
}

void run_repair(const check_arguments& arguments) {
    bool is_sound = false;
    {
        opened_image image(parse_image(arguments.image), image_use::write, arguments.how);
        const build_moment when = build_now();
        const fat::packed_time now = fat::pack(when.time, when.zone);
        const fat::repair_options how{.page = page_of(arguments), .date = now.date, .time = now.time};
        const auto report = value_or_fail(fat::repair(image.volume(), how), arguments.image);
        if (not arguments.wants_json)
            for (const std::string& action : report.actions)
                fmt::print("repaired: {}\n", terminal_text(action));
        print(report.after, arguments.wants_json);
        is_sound = report.after.is_sound();
    }
    if (not is_sound) leave(exit_code::damaged);
}

}  // namespace

void add_fat_check(command_syntax fat) {
    const auto add = [&](const char* name, const char* what, auto run) {
        const auto arguments = std::make_shared<check_arguments>();
        const command_syntax command = fat.add_subcommand(name, what);
        add_overlay_option(command, arguments->how);
        add_code_page_option(command, arguments->how);
        command.add_option("IMAGE", arguments->image, "the image, or IMAGE@N for its partition N").required();
        command.add_flag("--json", arguments->wants_json, "print the report for programs");
        command.on_call([arguments, run] { run(*arguments); });
    };
    add("check", "tell whether a volume is sound; changes nothing", run_check);
    add("repair", "make a damaged volume sound, losing nothing that can be reached", run_repair);
}

}  // namespace sluice::cli

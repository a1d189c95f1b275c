// sluice fat put: files and directories from the host to a volume.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/illegal_name_options.hpp"
#include "sluice/cli/fat/put_plan.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct put_arguments {
    image_options how;
    std::vector<std::string> operands;
    illegal_name_options names;
};

std::vector<put_step> plan_put(fat::file_system& system, const image_name& name,
                               const std::vector<fs::path>& sources, illegal_names policy) {
    const auto target = system.find(name.path);
    const bool is_into = target and (*target)->is_directory;
    if (sources.size() > 1 and not is_into)
        fail(shown(name.path) + ": not a directory; several sources require a directory as the target");
    put_planner planner(system, policy);
    if (is_into)
        planner.add_to_directory(sources, name.path);
    else
        planner.add_as(sources.front(), name.path);
    return planner.finish();
}

void run_put(const put_arguments& arguments) {
    const image_name name = parse_image(arguments.operands.back());
    if (not name.has_path)
        refuse_usage(fmt::format("missing path on the volume in '{}'; name it, as in '{}:/'",
                                 arguments.operands.back(), name.file));
    const std::vector<fs::path> sources(arguments.operands.begin(), arguments.operands.end() - 1);
    for (const fs::path& source : sources) {
        std::error_code why;
        (void)fs::status(source, why);
        if (why) fail(source.string() + ": open: " + why.message());
    }
    mounted_image mounted(name, image_use::write, arguments.how);
    const std::vector<put_step> steps = plan_put(mounted.system(), name, sources, policy_of(arguments.names));
    carry_out(mounted.system(), steps);
    mounted.finish();
}

}  // namespace

void add_fat_put(command_syntax fat) {
    const auto arguments = std::make_shared<put_arguments>();
    const command_syntax put = fat.add_subcommand("put", "copy files and directories to a volume")
                                   .example("sluice fat put build/boot notes.txt disk.img:/");
    put.add_option("SOURCE... IMAGE:/PATH", arguments->operands, "the files and directories, and the target")
        .required()
        .expected(2, -1);
    add_illegal_name_options(put, arguments->names);
    add_image_options(put, arguments->how);
    put.on_call([arguments] { run_put(*arguments); });
}

}  // namespace sluice::cli

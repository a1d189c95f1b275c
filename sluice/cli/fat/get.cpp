// sluice fat get: files and directories from a volume to the host.

#include <filesystem>
#include <memory>
#include <system_error>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/tree_extraction.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct get_arguments {
    image_options how;
    std::string image;
    std::string target;  // empty: the current directory
    bool salvages = false;
};

void get_file(mounted_image& from, const tree_entry& file, const fs::path& target, damaged_file policy,
              progress_bar& progress, unreadable_objects& skipped) {
    const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
    const auto directory = io::path_handle::open(parent.string());
    if (not directory) return skipped.report(problem_of_target(target.string(), directory.error()));
    const auto problems = file_extraction(from, progress, policy)
                              .copy(file, {.directory = *directory,
                                           .form = new_file::form_for(*directory),
                                           .name = target.filename().string(),
                                           .path = target.string()});
    for (const object_problem& each : problems)
        skipped.report(each);
}

void run_get(const get_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    unreadable_objects skipped;
    const fat::inode_status status = mounted.system().status(*find_or_fail(mounted.system(), name.path));
    const std::string last = name.path.substr(name.path.rfind('/') + 1);  // npos + 1 is 0
    fs::path target =
        arguments.target.empty() ? fs::path(last.empty() ? "." : last) : fs::path(arguments.target);
    std::error_code why;
    {
        progress_bar progress;
        const damaged_file policy = arguments.salvages ? damaged_file::salvage : damaged_file::skip;
        if (not status.is_directory) {
            if (not is_host_path(name.path)) fail(shown(name.path) + ": invalid file name on this system");
            if (fs::is_directory(target, why)) target /= last;
            progress.expect(status.size_bytes);
            get_file(mounted, {.path = name.path, .status = status}, target, policy, progress, skipped);
        } else {
            if (not arguments.target.empty() and fs::is_directory(target, why) and not last.empty())
                target /= last;
            const bool is_new = fs::create_directories(target, why);
            if (why) fail(target.string() + ": create directory: " + why.message());
            copy_tree({.from = mounted,
                       .path = name.path,
                       .target = target.string(),
                       .is_target_new = is_new,
                       .policy = policy},
                      progress, skipped);
        }
    }
    skipped.leave_if_any();
}

}  // namespace

void add_fat_get(command_syntax fat) {
    const auto arguments = std::make_shared<get_arguments>();
    const command_syntax get = fat.add_subcommand("get", "copy a file or directory from a volume")
                                   .example("sluice fat get --salvage card.img@2:/DCIM .");
    get.add_option("IMAGE:/PATH", arguments->image, "file or directory on the volume").required();
    get.add_option("TARGET", arguments->target, "local file or directory [default: current directory]");
    get.add_flag("--salvage", arguments->salvages,
                 "copy the readable parts of damaged files and report the missing byte ranges");
    add_image_options(get, arguments->how);
    get.on_call([arguments] { run_get(*arguments); });
}

}  // namespace sluice::cli

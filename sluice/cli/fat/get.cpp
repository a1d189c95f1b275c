// sluice fat get: files and directories from a volume to the host.

#include <filesystem>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/file_extraction.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct get_arguments {
    image_options how;
    std::string image;
    std::vector<std::string> target;  // none or one
    bool salvages = false;
};

// A name from a volume must not lead out of the directory that it is copied to.
bool is_host_name(const std::string& path) {
    for (const fs::path& part : fs::path(path))
        if (part == ".." or part == "." or part.is_absolute()) return false;
    return true;
}

void get_tree(const image_name& name, const std::vector<tree_entry>& entries, const fs::path& target,
              file_extraction& files, unreadable_objects& skipped) {
    fs::create_directories(target);
    for (const tree_entry& each : entries) {
        const std::string below = name.path.empty() ? each.path : each.path.substr(name.path.size() + 1);
        if (not is_host_name(below)) {
            skipped.report(each.path, "invalid file name on this system");
            continue;
        }
        if (not each.status.is_directory) {
            files.copy(each, target / below);
            continue;
        }
        std::error_code why;
        fs::create_directories(target / below, why);
        if (why) skipped.report_target((target / below).string(), error(why.value(), "create directory"));
    }
}

void run_get(const get_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    unreadable_objects skipped;
    const std::vector<tree_entry> entries = tree_of(mounted.system(), name.path, skipped);
    const bool is_file = not find_or_fail(mounted.system(), name.path)->is_directory;
    const std::string last = name.path.substr(name.path.rfind('/') + 1);  // npos + 1 is 0
    fs::path target =
        arguments.target.empty() ? fs::path(last.empty() ? "." : last) : fs::path(arguments.target[0]);
    std::uint64_t total = 0;
    for (const tree_entry& each : entries)
        total += each.status.size_bytes;
    {
        progress_bar progress(total);
        file_extraction files(mounted, progress, skipped,
                              arguments.salvages ? damaged_file::salvage : damaged_file::skip);
        if (is_file) {
            if (not is_host_name(name.path))
                fail_fat(shown(name.path) + ": invalid file name on this system");
            if (fs::is_directory(target)) target /= last;
            files.copy(entries.front(), target);
        } else {
            if (not arguments.target.empty() and fs::is_directory(target) and not last.empty())
                target /= last;
            get_tree(name, entries, target, files, skipped);
        }
    }
    skipped.leave_if_any();
}

}  // namespace

void add_fat_get(command_syntax fat) {
    const auto arguments = std::make_shared<get_arguments>();
    const command_syntax get = fat.add_subcommand("get", "copy a file or a directory from a volume");
    get.add_option("IMAGE:/PATH", arguments->image, "the file or directory").required();
    get.add_option("TARGET", arguments->target, "the copy [default: the same name, in this directory]")
        .expected(0, 1);
    get.add_flag("--salvage", arguments->salvages,
                 "copy the readable parts of damaged files; report the missing byte ranges");
    add_image_options(get, arguments->how);
    get.on_call([arguments] { run_get(*arguments); });
}

}  // namespace sluice::cli

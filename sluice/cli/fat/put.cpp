// sluice fat put: files and directories from the host to a volume.

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/file_import.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct put_arguments {
    image_options how;
    std::vector<std::string> operands;
};

std::string joined(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory + "/" + name;
}

void put_tree(fat::file_system& system, const fs::path& from, const std::string& to, progress_bar& progress) {
    if (not fs::is_directory(from)) return put_file(system, from, to, progress);
    if (not to.empty()) make_directory(system, to);
    for (const auto& each : fs::recursive_directory_iterator(from)) {
        const std::string below = joined(to, each.path().lexically_relative(from).string());
        if (each.is_directory())
            make_directory(system, below);
        else if (each.is_regular_file())
            put_file(system, each.path(), below, progress);
        else
            fmt::print(stderr, "sluice fat: {}: left out, neither file nor directory\n",
                       each.path().string());
    }
}

std::uint64_t bytes_below(const fs::path& path) {
    if (not fs::is_directory(path)) return fs::exists(path) ? fs::file_size(path) : 0;
    std::uint64_t total = 0;
    for (const auto& each : fs::recursive_directory_iterator(path))
        if (each.is_regular_file()) total += each.file_size();
    return total;
}

void put_all(fat::file_system& system, const image_name& name, const std::vector<std::string>& sources) {
    const auto target = system.find(name.path);
    const bool is_into = target and (*target)->is_directory;
    if (sources.size() > 1 and not is_into)
        fail_fat(shown(name.path) + ": is no directory to put several files into");
    std::uint64_t total = 0;
    for (const std::string& source : sources)
        total += bytes_below(source);
    progress_bar progress(total);
    for (const std::string& source : sources) {
        const fs::path from = fs::path(source).lexically_normal();
        const std::string last = (from.has_filename() ? from : from.parent_path()).filename().string();
        const bool has_name = last != "." and last != "..";
        put_tree(system, source, is_into and has_name ? joined(name.path, last) : name.path, progress);
    }
}

void run_put(const put_arguments& arguments) {
    const image_name name = parse_image(arguments.operands.back());
    if (not name.has_path) fail_fat(arguments.operands.back() + ": say where, as in " + name.file + ":/");
    const std::vector<std::string> sources(arguments.operands.begin(), arguments.operands.end() - 1);
    for (const std::string& source : sources)
        if (not fs::exists(source)) fail_fat(source + ": there is no such file or directory");
    mounted_image mounted(name, image_use::write, arguments.how);
    put_all(mounted.system(), name, sources);
    mounted.finish();
}

}  // namespace

void add_fat_put(command_syntax fat) {
    const auto given = std::make_shared<put_arguments>();
    const command_syntax put = fat.add_subcommand("put", "copy files and directories to a volume");
    put.add_option("SOURCE... IMAGE:/PATH", given->operands, "what to copy, and last where to")
        .required()
        .expected(2, -1);
    add_image_options(put, given->how);
    put.on_call([given] { run_put(*given); });
}

}  // namespace sluice::cli

#include "sluice/cli/fat/file_import.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::cli {
namespace {

// Names were checked before anything was written. But if two directories are merged, a file created
// since may have this name as its short name.
void refuse_other_name(fat::file_system& system, const std::string& to) {
    const auto present = system.find(to);
    if (not present) return;
    const std::string path = system.path_of(**present);
    // npos + 1 is 0.
    const auto last = [](std::string_view of) { return of.substr(of.rfind('/') + 1); };
    if (not equal_ignoring_case(last(path), last(to)))
        fail(fmt::format("/{} is the short name of /{} on the volume", to, path));
}

}  // namespace

fat::inode_handle open_or_create(fat::file_system& system, const std::string& path) {
    auto found = system.find(path);
    if (not found and found.error() == std::errc::no_such_file_or_directory)
        return value_or_fail(system.create(path, false, fat::attributes::archive), shown(path));
    fat::inode_handle file = value_or_fail(std::move(found), shown(path));
    if (file->is_directory) fail(shown(path) + ": is a directory");
    succeed_or_fail(system.truncate(*file, 0), shown(path));
    return file;
}

void make_directory(fat::file_system& system, const std::string& path) {
    const auto made = system.create(path, true, fat::attributes::none);
    if (not made and made.error() != std::errc::file_exists)
        succeed_or_fail(failure(made.error()), shown(path));
}

void put_file(fat::file_system& system, const std::filesystem::path& from, host_reader& files,
              const std::string& to, progress_bar& progress) {
    progress.name(to);
    host_block block = files.next();
    if (block.problem) fail(fat_message(*block.problem, from.string()));
    refuse_other_name(system, to);
    const fat::inode_handle file = open_or_create(system, to);
    // Fails early if the file does not fit.
    succeed_or_fail(system.preallocate(*file, block.file_bytes), shown(to));
    fat::run_list::hint hint;
    for (;;) {
        if (block.problem) fail(fat_message(*block.problem, from.string()));
        succeed_or_fail(system.write(*file, hint, block.bytes, block.offset), shown(to));
        progress.add(block.bytes.size());
        if (block.is_last) break;
        block = files.next();
    }
    auto modified = std::chrono::time_point_cast<fat::time_point::duration>(block.modified);
    // A file that the build itself created has another time in each run.
    if (const auto latest = source_date()) modified = std::min(modified, *latest);
    succeed_or_fail(system.change(*file, {.modified = modified}), shown(to));
}

}  // namespace sluice::cli

#include "sluice/cli/fat/file_import.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/file_status.hpp"

namespace sluice::cli {
namespace {

// Names were checked before anything was written. But if two directories are merged, a file created since may
// have this name as its short name.
void refuse_other_name(fat::file_system& system, const std::string& to) {
    const auto present = system.find(to);
    if (not present) return;
    const std::string path = system.path_of(**present);
    const auto last = [](std::string_view of) { return of.substr(of.rfind('/') + 1); };  // npos + 1 is 0
    if (not equal_ignoring_case(last(path), last(to)))
        fail_fat(fmt::format("/{} is the short name of /{} on the volume", to, path));
}

}  // namespace

fat::item_handle open_or_create(fat::file_system& system, const std::string& path) {
    auto found = system.find(path);
    if (not found and found.error() == std::errc::no_such_file_or_directory)
        return value_or_fail(system.create(path, false, fat::attributes::archive), shown(path));
    fat::item_handle file = value_or_fail(std::move(found), shown(path));
    if (file->is_directory) fail_fat(shown(path) + ": is a directory");
    succeed_or_fail(system.truncate(*file, 0), shown(path));
    return file;
}

void make_directory(fat::file_system& system, const std::string& path) {
    const auto made = system.create(path, true, fat::attributes::none);
    if (not made and made.error() != std::errc::file_exists)
        succeed_or_fail(failure(made.error()), shown(path));
}

void put_file(fat::file_system& system, const std::filesystem::path& from, const std::string& to,
              progress_bar& progress) {
    progress.name(shown(to));
    io::file_handle source = value_or_fail(io::file_handle::open({}, from.string()), from.string());
    const std::uint64_t size = value_or_fail(source.maximum_extent(), from.string());
    refuse_other_name(system, to);
    const fat::item_handle file = open_or_create(system, to);
    succeed_or_fail(system.expect(*file, size), shown(to));  // says early that it does not fit
    std::vector<std::byte> room(1 << 20);
    fat::run_list::hint hint;
    for (std::uint64_t offset = 0;;) {
        const auto got = source.read(io::io_request<io::bytes_type>{.buffers = room, .offset = offset});
        if (not got) fail_fat(fat_message(got.error(), from.string()));
        if (got->empty()) break;
        succeed_or_fail(system.write(*file, hint, *got, offset), shown(to));
        offset += got->size();
        progress.add(got->size());
    }
    const auto status = value_or_fail(io::status_of(source), from.string());
    auto modified = std::chrono::time_point_cast<fat::time_point::duration>(status.modified);
    // A file that was created by the build itself has another time in each run.
    if (const auto latest = source_date()) modified = std::min(modified, *latest);
    succeed_or_fail(system.change(*file, {.modified = modified}), shown(to));
}

}  // namespace sluice::cli

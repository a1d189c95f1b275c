#include "sluice/cli/fat/image/undo_file.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "sluice/base/random.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/fat/check/undo_log.hpp"
#include "sluice/fat/partition/partition.hpp"
#include "sluice/io/path/directory_handle.hpp"

// sluice fat undo, and the file that repair --undo writes.

namespace sluice::cli {
namespace {

constexpr std::uint64_t undo_file_bytes_max = std::uint64_t{1} << 46;
// Fingerprints cover FATs and root up to here as a whole; they sample the rest.
constexpr std::uint64_t fingerprint_bytes_max = std::uint64_t{1} << 30;
constexpr unsigned owner_only = 0600;

void sync_directory_of(const std::string& path) {
    const auto directory = std::filesystem::absolute(path).parent_path().string();
    auto opened = value_or_fail(io::directory_handle::open({}, directory), directory);
    succeed_or_fail(opened.barrier(), directory);
}

std::int64_t modification_of_image(fat::device& volume, const std::string& path) {
    const auto place = volume.location_of(0);
    return place ? value_or_fail(modification_of(*place->file), path) : 0;
}

struct undo_arguments {
    std::string image;
    std::string file;
    bool force = false;
};

// IMAGE@N is accepted, and must be the partition that was repaired.
void check_partition(fat::device& image, const image_name& name, const fat::undo_binding& binding) {
    if (not name.partition) return;
    const auto where = fat::find_volume(image, name.partition);
    if (not where) fail(name.file + ": " + where.error().message);
    if (where->offset != binding.volume.offset)
        fail(fmt::format("{}@{}: another partition was repaired", name.file, *name.partition));
}

void run_undo(const undo_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    if (exists(journal_of(name.file)))
        fail(fmt::format("{}: has a journal, {}, which the undo file does not cover", name.file,
                         journal_of(name.file)));
    opened_image image({.file = name.file, .partition = 0, .path = {}}, image_use::write, {});
    auto handle = value_or_fail(io::file_handle::open({}, arguments.file, io::mode::write), arguments.file);
    const std::uint64_t present = value_or_fail(handle.maximum_extent(), arguments.file);
    fat::file_device log = value_or_fail(fat::file_device::over(std::move(handle)), arguments.file);
    auto opened = fat::undo_log::open(log, present);
    if (not opened) fail(arguments.file + ": " + opened.error());
    check_partition(image.volume(), name, opened->binding());
    const auto fits =
        opened->check_image(image.volume(), modification_of_image(image.volume(), arguments.image));
    if (not fits and not arguments.force)
        fail(fmt::format("{}: {}; use --force to write the original bytes back in any case", arguments.file,
                         fits.error()));
    const auto done = opened->apply(image.volume());
    if (not done)
        fail(fmt::format("{0}: {1}; run 'sluice fat undo {0} {2}' again to continue", arguments.image,
                         done.error(), arguments.file));
    fmt::print("{}: {} restored\n", arguments.image, size_text(opened->recorded_bytes()));
}

}  // namespace

undo_file::undo_file(const std::string& path, opened_image& image, const fat::geometry& shape)
    : path_(path), image_(image) {
    auto file = io::file_handle::open({}, path, io::mode::write, io::creation::only_if_not_exist,
                                      io::caching::all, io::open_flag::none, owner_only);
    if (not file and file.error() == std::errc::file_exists)
        fail(path +
             ": exists; choose another name for the undo file, so that no earlier repair becomes final");
    store_ = value_or_fail(
        fat::sparse_device::over(value_or_fail(std::move(file), path), undo_file_bytes_max), path);
    sync_directory_of(path);
    fat::undo_binding binding;
    const auto place = image.volume().location_of(0);
    if (not place) fail(path + ": an undo file is only for a repair of the image itself");
    binding.image_bytes = value_or_fail(place->file->maximum_extent(), image.path());
    binding.volume = {.offset = image.volume_offset(), .length = image.volume().size_bytes()};
    binding.fingerprint_bytes = std::min({shape.data_offset, binding.volume.length, fingerprint_bytes_max});
    system_random().fill(binding.id);
    recorder_ = value_or_fail(fat::undo_recorder::begin(image.volume(), *store_, binding), path);
}

bool undo_file::finish() {
    if (recorder_->is_empty()) {
        recorder_.reset();
        store_.reset();
        remove_or_fail(path_);
        return false;
    }
    succeed_or_fail(image_.volume().barrier(), image_.path());
    succeed_or_fail(recorder_->finish(modification_of_image(image_.volume(), image_.path())), path_);
    return true;
}

void add_fat_undo(command_syntax fat) {
    const auto arguments = std::make_shared<undo_arguments>();
    const command_syntax command = fat.add_subcommand("undo", "restore what 'repair --undo FILE' changed")
                                       .example("sluice fat undo card.img card.undo");
    command.add_option("IMAGE", arguments->image, "image that was repaired").required();
    command.add_option("FILE", arguments->file, "undo file").required();
    command.add_flag("--force", arguments->force, "restore another image, or one changed since the repair");
    command.on_call([arguments] { run_undo(*arguments); });
}

}  // namespace sluice::cli

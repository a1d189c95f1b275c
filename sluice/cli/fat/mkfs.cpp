// sluice fat mkfs, label: volumes as a whole.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/format_arguments.hpp"
#include "sluice/cli/fat/image/existing_content.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/edit/set_label.hpp"
#include "sluice/fat/partition/partition.hpp"

namespace sluice::cli {
namespace {

struct mkfs_arguments {
    std::string image;
    std::string size;
    format_arguments format;
    bool force = false;
};

// Returns the value of --size, which was validated when it was parsed.
std::uint64_t size_of(const mkfs_arguments& arguments) {
    return parse_size(arguments.size).value();
}

byte_extent place_in(fat::device& image, const image_name& name) {
    if (not name.partition or *name.partition == 0) return {.offset = 0, .length = image.size_bytes()};
    const auto where = fat::find_volume(image, name.partition);
    if (not where) fail(name.file + ": " + where.error().message);
    return *where;
}

void refuse_content(fat::file_device& image, byte_extent where, const std::string& what) {
    const auto formats = content_of(image, where);
    if (not formats) fail(what + ": " + formats.error());
    if (formats->empty()) return;
    std::string found;
    for (const std::string& each : *formats)
        found += (found.empty() ? "" : ", ") + each;
    fail(what + ": contains " + found + "; use --force to overwrite it");
}

// Opens the image. Returns std::nullopt if it does not exist and --size is given.
std::optional<fat::file_device> open_present(const mkfs_arguments& arguments, const std::string& path) {
    auto file = io::file_handle::open({}, path, io::mode::write);
    if (not file and file.error() == std::errc::no_such_file_or_directory) {
        if (not arguments.size.empty()) return std::nullopt;
        fail(file.error().message() + "; use --size to create the image");
    }
    io::file_handle opened = value_or_fail(std::move(file), path);
    const image_users users = users_of(opened, path);
    if (users == image_users::some) fail(path + in_use);
    if (users == image_users::unknown)
        warn(path +
             ": cannot check whether another program uses the image: only the owner of the file can, on a "
             "local file system");
    return value_or_fail(fat::file_device::over(std::move(opened)), path);
}

// Creates or extends the image.
fat::file_device open_sized(const mkfs_arguments& arguments, const std::string& path) {
    io::file_handle file =
        value_or_fail(io::file_handle::open({}, path, io::mode::write, io::creation::if_needed), path);
    (void)value_or_fail(file.truncate(size_of(arguments)), path);
    return value_or_fail(fat::file_device::over(std::move(file)), path);
}

// All checks, before anything is written.
void check_before(const mkfs_arguments& arguments, const image_name& name, fat::file_device* present) {
    if (exists(journal_of(name.file)))
        fail(fmt::format(
            "{}: has a journal, {}; remove the journal first, because it would be written to the new volume",
            name.file, journal_of(name.file)));
    if (present != nullptr and not arguments.force)
        refuse_content(*present, place_in(*present, name), arguments.image);
    if (arguments.size.empty()) return;
    const std::uint64_t wanted = size_of(arguments);
    const std::uint64_t now = present == nullptr ? 0 : present->size_bytes();
    if (now > wanted)
        fail(fmt::format(
            "{0}: has {1} bytes, more than --size {2}; use a larger size, or remove the file first",
            name.file, now, arguments.size));
}

fat::format_plan plan_or_fail(const mkfs_arguments& arguments, std::uint64_t bytes,
                              const fat::format_options& options) {
    auto plan = fat::plan_format(bytes, options);
    if (not plan) fail(fmt::format("{}: {}", arguments.image, plan.error()));
    return *std::move(plan);
}

void run_mkfs(const mkfs_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    fat::format_options options = options_of(arguments.format, build_now());
    auto hold = writer_lock::take(name.file);
    if (not hold) fail(hold.error().message());
    std::optional<fat::file_device> image = open_present(arguments, name.file);
    check_before(arguments, name, image ? &*image : nullptr);
    if (not arguments.size.empty()) {
        // Before the file is created or extended.
        if (not name.partition) (void)plan_or_fail(arguments, size_of(arguments), options);
        image.emplace(open_sized(arguments, name.file));
    }
    const byte_extent where = place_in(*image, name);
    fat::partition_device volume = value_or_fail(fat::partition_device::of(*image, where), name.file);
    options.hidden_bytes = where.offset;
    const fat::format_plan plan = plan_or_fail(arguments, volume.size_bytes(), options);
    succeed_or_fail(fat::format(volume, plan), arguments.image);
    describe(plan);
}

struct label_arguments {
    image_options how;
    std::string image;
    std::optional<std::string> label;
    bool removes = false;
};

void run_label(const label_arguments& arguments) {
    const bool writes = arguments.label.has_value() or arguments.removes;
    opened_image image(parse_image(arguments.image), writes ? image_use::write : image_use::read,
                       arguments.how);
    const fat::geometry shape = image.shape();
    if (not writes) {
        fmt::print("{}\n",
                   fat::label_text(value_or_fail(fat::read_label(image.volume(), shape), arguments.image)));
        return;
    }
    const build_moment when = build_now();
    const fat::packed_time now = fat::pack(when.time, when.zone);
    const auto label = arguments.removes ? fat::no_label : fat::encode_label(*arguments.label).value();
    succeed_or_fail(fat::set_label(image.volume(), shape, label, now.date, now.time), arguments.image);
}

void add_label(command_syntax fat) {
    const auto arguments = std::make_shared<label_arguments>();
    const command_syntax command = fat.add_subcommand("label", "show, set, or remove the volume label");
    command.add_option("IMAGE", arguments->image, "image file, or IMAGE@N for its partition N").required();
    const option_syntax label =
        command.add_option("LABEL", arguments->label, "new label, at most 11 characters")
            .check(validate_label);
    command.add_flag("--remove", arguments->removes, "remove the label").excludes(label);
    add_overlay_option(command, arguments->how);
    command.on_call([arguments] { run_label(*arguments); });
}

}  // namespace

void add_fat_mkfs(command_syntax fat) {
    const auto arguments = std::make_shared<mkfs_arguments>();
    const command_syntax mkfs =
        fat.add_subcommand("mkfs", "create an empty volume; with --size, also create or extend the image");
    mkfs.add_option("IMAGE", arguments->image, "image file, or IMAGE@N for its partition N").required();
    mkfs.add_option("--size", arguments->size, "image size, with an optional suffix k, m, g, or t")
        .check(validate_size)
        .value_name("SIZE");
    add_format_options(mkfs, arguments->format,
                       "volume serial number, in hexadecimal [default: $SOURCE_DATE_EPOCH, or random]");
    mkfs.add_flag("--force", arguments->force, "overwrite existing data in the image");
    mkfs.on_call([arguments] { run_mkfs(*arguments); });
    add_label(fat);
}

}  // namespace sluice::cli

// sluice fat mkfs, label: volumes as a whole.

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "sluice/base/random.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/image.hpp"
#include "sluice/fat/format.hpp"
#include "sluice/fat/partition.hpp"
#include "sluice/fat/set_label.hpp"

namespace sluice::cli {
namespace {

struct mkfs_arguments {
    std::string image;
    std::string size;
    unsigned bits = 0;
    std::string cluster;
    std::uint32_t sector = 512;
    std::uint32_t fats = 2;
    std::optional<std::uint32_t> root_entries;
    std::optional<std::uint32_t> reserved;
    std::string label;
    std::string serial;
    bool force = false;
};

fat::label_bytes label_of(const std::string& text) {
    const auto label = fat::encode_label(text);
    if (not label) fail_fat(label.error());
    return *label;
}

std::uint64_t size_of(const std::string& text) {
    const auto size = parse_size(text);
    if (not size)
        fail_fat(fmt::format("'{}' is no size: a number of bytes, or one with k, m, g or t behind", text));
    return *size;
}

std::uint32_t serial_of(const std::string& text) {
    if (text.empty()) {
        if (std::getenv("SOURCE_DATE_EPOCH") != nullptr)
            return static_cast<std::uint32_t>(build_time().time_since_epoch() / std::chrono::seconds(1));
        return static_cast<std::uint32_t>(system_random().next_u64());
    }
    std::string digits = text;
    std::erase(digits, '-');
    std::uint32_t serial = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, serial, 16);
    if (parsed.ec != std::errc{} or parsed.ptr != end)
        fail_fat(fmt::format("'{}' is no serial number: eight digits of base 16, as in 1234-ABCD", text));
    return serial;
}

fat::format_options options_of(const mkfs_arguments& arguments) {
    fat::format_options options;
    if (arguments.bits != 0)
        options.type = arguments.bits == 12   ? fat::fat_type::fat12
                       : arguments.bits == 16 ? fat::fat_type::fat16
                                              : fat::fat_type::fat32;
    if (not arguments.cluster.empty())
        options.cluster_bytes =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(size_of(arguments.cluster), 1U << 30));
    options.sector_bytes = arguments.sector;
    options.fat_count = arguments.fats;
    options.root_entries = arguments.root_entries;
    options.reserved_sectors = arguments.reserved;
    options.label = label_of(arguments.label);
    options.serial = serial_of(arguments.serial);
    const fat::packed_time now = fat::pack(build_time(), fat::time_zone::host());
    options.label_date = now.date;
    options.label_time = now.time;
    return options;
}

// The file, made or lengthened if a size was given.
io::file_handle open_for_format(const mkfs_arguments& arguments, const std::string& path) {
    const auto creation = arguments.size.empty() ? io::creation::open_existing : io::creation::if_needed;
    auto file = io::file_handle::open({}, path, io::mode::write, creation);
    if (not file and file.error() == std::errc::no_such_file_or_directory)
        fail_fat(path + ": there is no such image; --size makes one");
    io::file_handle opened = value_or_fail(std::move(file), path);
    if (arguments.size.empty()) return opened;
    const std::uint64_t now = value_or_fail(opened.maximum_extent(), path);
    const std::uint64_t wanted = size_of(arguments.size);
    if (now > wanted)
        fail_fat(fmt::format("{}: has {} bytes already, more than --size {}; remove it first", path, now,
                             arguments.size));
    (void)value_or_fail(opened.truncate(wanted), path);
    return opened;
}

byte_extent place_in(fat::device& image, const image_name& name) {
    if (not name.partition or *name.partition == 0) return {.offset = 0, .length = image.size_bytes()};
    const auto where = fat::find_volume(image, name.partition);
    if (not where) fail_fat(name.file + ": " + where.error().message);
    return *where;
}

bool begins_with_zeros(fat::device& volume) {
    std::array<std::byte, 512> start{};
    if (volume.size_bytes() < start.size() or not volume.read_at(0, std::span<std::byte>(start))) return true;
    return std::ranges::all_of(start, [](std::byte each) { return each == std::byte{}; });
}

void describe(const fat::format_plan& plan) {
    const fat::geometry& shape = plan.shape;
    fmt::print("FAT{}, {} clusters of {} bytes, serial {:04X}-{:04X}\n",
               fat::entry_bits(shape.type) == 28 ? 32 : fat::entry_bits(shape.type), shape.cluster_count,
               shape.cluster_bytes, shape.serial >> 16, shape.serial & 0xffff);
}

void run_mkfs(const mkfs_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    fat::format_options options = options_of(arguments);
    auto hold = write_hold::take(name.file);
    if (not hold) fail_fat(hold.error().message());
    fat::file_device image =
        value_or_fail(fat::file_device::over(open_for_format(arguments, name.file)), name.file);
    const byte_extent where = place_in(image, name);
    fat::part_device volume = value_or_fail(fat::part_device::of(image, where), name.file);
    options.hidden_sectors = static_cast<std::uint32_t>(where.offset / options.sector_bytes);
    if (not arguments.force and not begins_with_zeros(volume))
        fail_fat(arguments.image +
                 ": there is something in it already; --force makes a new volume all the same");
    if (std::filesystem::exists(journal_of(name.file)))
        fail_fat(
            fmt::format("{}: has the journal of a volume that was not unmounted, {}; it would be carried out "
                        "on the new one, so remove it first",
                        name.file, journal_of(name.file)));
    const auto plan = fat::plan_format(volume.size_bytes(), options);
    if (not plan) fail_fat(fmt::format("{}: {}", arguments.image, plan.error()));
    succeed_or_fail(fat::format(volume, *plan), arguments.image);
    describe(*plan);
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
    const fat::packed_time now = fat::pack(build_time(), fat::time_zone::host());
    const auto label = arguments.removes ? fat::no_label : label_of(*arguments.label);
    succeed_or_fail(fat::set_label(image.volume(), shape, label, now.date, now.time), arguments.image);
}

void add_label(command_syntax fat) {
    const auto arguments = std::make_shared<label_arguments>();
    const command_syntax command = fat.add_subcommand("label", "show, set or remove the label of a volume");
    command.add_option("IMAGE", arguments->image, "the image, or IMAGE@N").required();
    command.add_option("LABEL", arguments->label, "at most 11 characters");
    command.add_flag("--remove", arguments->removes, "leave the volume without one");
    add_overlay_option(command, arguments->how);
    command.on_call([arguments] { run_label(*arguments); });
}

}  // namespace

void add_fat_make(command_syntax fat) {
    const auto arguments = std::make_shared<mkfs_arguments>();
    const command_syntax mkfs =
        fat.add_subcommand("mkfs", "make an empty volume, and the image if --size says how long");
    mkfs.add_option("IMAGE", arguments->image, "the image, or IMAGE@N for its partition N").required();
    mkfs.add_option("--size", arguments->size, "make the image this long: 1440k, 64m, 8g").value_name("SIZE");
    mkfs.add_option("--type", arguments->bits, "12, 16 or 32; by default what the size suggests")
        .one_of({12, 16, 32});
    mkfs.add_option("--cluster", arguments->cluster, "bytes per cluster: 512 to 64k").value_name("SIZE");
    mkfs.add_option("--sector", arguments->sector, "bytes per sector: 512, 1024, 2048, 4096").shows_default();
    mkfs.add_option("--fats", arguments->fats, "copies of the FAT: 1 or 2").shows_default();
    mkfs.add_option("--root-entries", arguments->root_entries, "slots of the root of FAT12 and FAT16");
    mkfs.add_option("--reserved", arguments->reserved, "sectors before the first FAT");
    mkfs.add_option("--label", arguments->label, "the volume's name, at most 11 characters");
    mkfs.add_option("--serial", arguments->serial, "as in 1234-ABCD; by default random");
    mkfs.add_flag("--force", arguments->force, "even if there is something in it already");
    mkfs.on_call([arguments] { run_mkfs(*arguments); });
    add_label(fat);
}

}  // namespace sluice::cli

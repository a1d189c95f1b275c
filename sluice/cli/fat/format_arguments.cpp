#include "sluice/cli/fat/format_arguments.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "sluice/base/random.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/fat/codec/crc32.hpp"

namespace sluice::cli {
namespace {

std::optional<std::uint32_t> serial_of(std::string digits) {
    std::erase(digits, '-');
    std::uint32_t serial = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, serial, 16);
    return parsed.ec == std::errc{} and parsed.ptr == end ? std::optional(serial) : std::nullopt;
}

std::string validate_serial(const std::string& text) {
    return serial_of(text) ? "" : "use up to eight hexadecimal digits, as in 1234-ABCD";
}

std::uint32_t serial_of(const format_arguments& arguments, const build_moment& when) {
    if (not arguments.serial.empty()) return serial_of(arguments.serial).value();
    if (not arguments.serial_from.empty())
        return fat::crc32(bytes_view(std::as_bytes(std::span(arguments.serial_from))));
    if (when.is_fixed)
        return static_cast<std::uint32_t>(when.time.time_since_epoch() / std::chrono::seconds(1));
    return static_cast<std::uint32_t>(system_random().next_u64());
}

}  // namespace

std::string validate_label(const std::string& text) {
    const auto label = fat::encode_label(text);
    return label ? "" : label.error();
}

// The texts were validated when they were parsed.
fat::format_options options_of(const format_arguments& arguments, const build_moment& when) {
    fat::format_options options;
    if (arguments.bits != 0)
        options.type = arguments.bits == 12   ? fat::fat_type::fat12
                       : arguments.bits == 16 ? fat::fat_type::fat16
                                              : fat::fat_type::fat32;
    if (not arguments.cluster.empty())
        options.cluster_bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(parse_size(arguments.cluster).value(), 1U << 30));
    options.sector_bytes = arguments.sector;
    options.fat_count = arguments.fats;
    options.root_entries = arguments.root_entries;
    options.reserved_sectors = arguments.reserved;
    options.label = fat::encode_label(arguments.label).value();
    options.serial = serial_of(arguments, when);
    const fat::packed_time now = fat::pack(when.time, when.zone);
    options.label_date = now.date;
    options.label_time = now.time;
    return options;
}

void describe(const fat::format_plan& plan) {
    const fat::geometry& shape = plan.shape;
    fmt::print("FAT{}, {} clusters of {} bytes, serial {:04X}-{:04X}\n",
               fat::entry_bits(shape.type) == 28 ? 32 : fat::entry_bits(shape.type), shape.cluster_count,
               shape.cluster_bytes, shape.serial >> 16, shape.serial & 0xffff);
}

void add_format_options(command_syntax command, format_arguments& arguments, const char* serial_help) {
    command.add_option("--type", arguments.bits, "FAT type: 12, 16, 32 [default: by size]")
        .one_of({12, 16, 32})
        .value_name("BITS")
        .group("Format");
    command.add_option("--cluster", arguments.cluster, "bytes per cluster, 512 to 64k [default: by size]")
        .check(validate_size)
        .value_name("SIZE")
        .group("Format");
    command.add_option("--sector", arguments.sector, "bytes per sector: 512, 1024, 2048, 4096")
        .one_of({512, 1024, 2048, 4096})
        .value_name("BYTES")
        .shows_default()
        .group("Format");
    command.add_option("--fats", arguments.fats, "number of FAT copies: 1, 2")
        .one_of({1, 2})
        .shows_default()
        .group("Format");
    command
        .add_option("--root-entries", arguments.root_entries,
                    "entries in the root directory (FAT12 and FAT16)")
        .between(1U, 65'408U)
        .group("Format");
    command.add_option("--reserved", arguments.reserved, "sectors before the first FAT")
        .between(1U, 65'535U)
        .group("Format");
    command.add_option("--label", arguments.label, "volume label, at most 11 characters")
        .check(validate_label)
        .value_name("LABEL");
    const option_syntax serial = command.add_option("--serial", arguments.serial, serial_help)
                                     .check(validate_serial)
                                     .value_name("XXXX-XXXX")
                                     .group("Format");
    (void)command
        .add_option("--serial-from", arguments.serial_from, "derive the volume serial number from TEXT")
        .value_name("TEXT")
        .group("Format")
        .excludes(serial);
}

}  // namespace sluice::cli

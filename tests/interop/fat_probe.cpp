// Creates files on a FAT volume, or shows its content, for the comparison of kernel_vfat.py with
// Linux.
//
// fat_probe make IMAGE 12|16|32: creates a new image
// fat_probe show IMAGE: prints its label, and a line for each entry, like kernel_vfat_tool.c
// fat_probe check IMAGE: exits with 1 if it is damaged

#include <array>
#include <cstdio>
#include <iostream>
#include <string>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/fat/check/check.hpp"
#include "sluice/fat/codec/boot_sector.hpp"
#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/edit/format.hpp"
#include "sluice/fat/engine/file_system.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t mebi = 1U << 20;

file_device open_image(const std::string& path, io::creation how) {
    auto file = io::file_handle::open({}, path, io::mode::write, how).value();
    if (how == io::creation::always_new) (void)file.truncate(64 * mebi).value();
    return file_device::over(std::move(file)).value();
}

time_point at_second(std::int64_t seconds, int hundredths = 0) {
    return time_point(std::chrono::seconds(seconds) + std::chrono::milliseconds(hundredths * 10));
}

struct sample {
    std::string path;
    std::size_t bytes = 0;
    std::int64_t changed = 1'000'000'000;
    attributes bits = attributes::archive;
};

void put(file_system& into, const sample& what) {
    const auto file = into.create(what.path, false, what.bits).value();
    run_list::hint hint;
    std::string content(what.bytes, 'c');
    for (std::size_t i = 0; i != content.size(); ++i)
        content[i] = static_cast<char>(i * 13 + what.bytes);
    into.write(*file, hint, std::as_bytes(std::span(content)), 0).value();
    into.change(*file, {.created = at_second(what.changed - 1000, 37),
                        .modified = at_second(what.changed),
                        .bits = what.bits})
        .value();
}

void fill(file_system& fs) {
    using enum attributes;
    put(fs, {.path = "README.TXT"});
    // 1980, the first there is.
    put(fs, {.path = "lower.txt", .bytes = 1, .changed = 315'532'800 + 1000});
    put(fs, {.path = "lower.TXT2", .bytes = 2, .changed = 4'354'819'198});  // 2107, the last
    put(fs, {.path = "UPPER.txt", .bytes = 3});
    put(fs, {.path = "other.TXT", .bytes = 4, .bits = read_only});
    put(fs, {.path = "A name of several slots, with commas; and more.text", .bytes = 70'000});
    put(fs, {.path = ".hidden", .bytes = 5, .bits = hidden | archive});
    put(fs, {.path = "system file", .bytes = 6, .bits = attributes::system | read_only});
    put(fs, {.path = "naïve café ÆØÅ.txt", .bytes = 7});
    put(fs, {.path = "😀 日本語 🎉.txt", .bytes = 8, .changed = 1'709'164'800});  // 29 February
    put(fs, {.path = "exactly thirteen", .bytes = 9});
    put(fs, {.path = std::string(255, 'x'), .bytes = 10});
    fs.create("a directory with a long name", true, none).value();
    for (int i = 0; i != 40; ++i)
        put(fs, {.path = "a directory with a long name/long name, number " + std::to_string(i),
                 .bytes = static_cast<std::size_t>(i) * 101});
    for (int i = 0; i != 40; i += 4)
        fs.remove(*fs.find("a directory with a long name/long name, number " + std::to_string(i)).value())
            .value();
    fs.create("DIR", true, hidden).value();
    fs.create("DIR/sub", true, none).value();
    fs.rename(*fs.find("UPPER.txt").value(), "DIR/sub/upper, but moved", file_system::if_taken::refuse)
        .value();
    fs.rename(*fs.find("README.TXT").value(), "Readme.txt", file_system::if_taken::refuse).value();
    // Half of a surrogate pair: it cannot be represented in UTF-8.
    put(fs, {.path = "DIR/lone \xed\xa0\xbd.txt", .bytes = 11});
}

std::string hex(std::string_view text) {
    std::string digits;
    for (const char each : text) {
        constexpr const char* all = "0123456789abcdef";
        digits += all[static_cast<unsigned char>(each) >> 4];
        digits += all[static_cast<unsigned char>(each) & 15];
    }
    return digits.empty() ? "-" : digits;
}

std::uint64_t digest(file_system& of, inode& file, std::uint64_t bytes) {
    std::uint64_t sum = 14695981039346656037U;  // FNV-1a
    std::string content(bytes, '\0');
    run_list::hint hint;
    of.read(file, hint, std::as_writable_bytes(std::span(content)), 0).value();
    for (const char each : content)
        sum = (sum ^ static_cast<unsigned char>(each)) * 1099511628211U;
    return sum;
}

// Returns the path, the short name, attributes, size, times of change and of creation, and a digest
// of the content.
std::string line_of(file_system& fs, const std::string& path, const std::string& short_name) {
    const auto held = fs.find(path).value();
    const inode_status status = fs.status(*held);
    const auto milliseconds = [](time_point time) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    };
    const long long changed = milliseconds(status.modified);
    const long long born = milliseconds(status.created);
    const unsigned long long sum = status.is_directory ? 0 : digest(fs, *held, status.size_bytes);
    std::array<char, 200> rest{};
    const int length =
        std::snprintf(rest.data(), rest.size(), "%02x %llu %lld %lld.%02lld %016llx\n",
                      static_cast<unsigned>(status.bits), static_cast<unsigned long long>(status.size_bytes),
                      changed / 1000, born / 1000, born % 1000 / 10, sum);
    ENSURE(length > 0 and static_cast<std::size_t>(length) < rest.size());
    return "entry " + hex('/' + path) + ' ' + hex(short_name) + ' ' + rest.data();
}

std::string listing_of(file_system& fs, const std::string& path) {
    std::string all;
    const auto directory = fs.find(path).value();
    for (std::uint32_t slot = 0;;) {
        const auto next = fs.list(*directory, slot).value();
        if (not next) return all;
        slot = next->slot + 1;
        const std::string full = path.empty() ? next->name : path + '/' + next->name;
        const name_entry& entry = *directory->content->at(next->slot);
        all += line_of(fs, full, entry.alias.empty() ? fold(entry.name) : entry.alias);
        if (next->status.is_directory) all += listing_of(fs, full);
    }
}

int run(const std::string& what, const std::string& image, const char* type) {
    auto device = open_image(image, what == "make" ? io::creation::always_new : io::creation::open_existing);
    if (what == "check") {
        const auto report = check(device).value();
        std::cout << text_of(report);
        return report.is_consistent() ? 0 : 1;
    }
    if (what == "make") {
        const std::string bits = type;
        const fat_type wanted = bits == "12"   ? fat_type::fat12
                                : bits == "16" ? fat_type::fat16
                                               : fat_type::fat32;
        const std::uint32_t cluster_bytes = wanted == fat_type::fat12   ? 32'768
                                            : wanted == fat_type::fat16 ? 2048
                                                                        : 512;
        const auto plan = plan_format(
            device.size_bytes(),
            {.type = wanted, .cluster_bytes = cluster_bytes, .label = encode_label("KERNEL TEST").value()});
        format(device, *plan).value();
    }
    const sluice::system_clock_source clock;
    const auto shape = read_geometry(device).value();
    const auto fs = file_system::mount(device, shape, clock, {.zone = time_zone::utc()}).value();
    if (what == "make") fill(*fs);
    std::cout << "label " << hex(fs->label()) << "\ndirty " << fs->was_dirty() << '\n' << listing_of(*fs, "");
    fs->unmount().value();
    return 0;
}

}  // namespace
}  // namespace sluice::fat

int main(int count, char** arguments) {
    if (count < 3) return 2;
    return sluice::fat::run(arguments[1], arguments[2], count > 3 ? arguments[3] : "");
}

// sluice fat ls, cat, stat, map: shows the content of a volume.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/tree.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {
namespace {

struct inspect_arguments {
    image_options how;
    std::string image;
    bool is_long = false;
    bool is_recursive = false;
    bool wants_counters = false;
    std::string strategy = "runs";
};

std::string attribute_text(const fat::inode_status& status) {
    std::string text = "-----";
    if (status.is_directory) text[0] = 'd';
    if (has(status.bits, fat::attributes::read_only)) text[1] = 'r';
    if (has(status.bits, fat::attributes::hidden)) text[2] = 'h';
    if (has(status.bits, fat::attributes::system)) text[3] = 's';
    if (has(status.bits, fat::attributes::archive)) text[4] = 'a';
    return text;
}

std::string time_text(fat::time_point when) {
    return local_time_text("%Y-%m-%d %H:%M", std::chrono::system_clock::to_time_t(when));
}

void run_ls(const inspect_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    fat::file_system& system = mounted.system();
    const bool is_directory = system.status(*find_or_fail(system, name.path)).is_directory;
    unreadable_objects skipped;
    auto entries = is_directory and not arguments.is_recursive ? entries_of(system, name.path)
                                                               : tree_of(system, name.path, skipped);
    std::ranges::sort(entries, {}, &tree_entry::path);
    const std::size_t prefix = not is_directory or name.path.empty() ? 0 : name.path.size() + 1;
    for (const tree_entry& each : entries) {
        const std::string text =
            terminal_text(each.path.substr(prefix)) + (each.status.is_directory ? "/" : "");
        if (arguments.is_long)
            fmt::print("{} {:>10} {} {}\n", attribute_text(each.status), each.status.size_bytes,
                       time_text(each.status.modified), text);
        else
            fmt::print("{}\n", text);
    }
    skipped.leave_if_any();
}

// Reads a whole file, in order, until `take` returns false.
template <class Take>
void read_all(fat::file_system& system, fat::inode& file, const std::string& path, Take take) {
    std::vector<std::byte> room(1 << 20);
    fat::run_list::hint hint;
    for (std::uint64_t offset = 0;;) {
        const std::size_t bytes = value_or_fail(system.read(file, hint, room, offset), shown(path));
        if (bytes == 0 or not take(std::span<const std::byte>(room).first(bytes))) return;
        offset += bytes;
    }
}

void run_cat(const inspect_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    const fat::inode_handle file = find_or_fail(mounted.system(), name.path);
    if (file->is_directory) fail(shown(name.path) + ": is a directory; 'sluice fat ls' lists it");
    read_all(mounted.system(), *file, name.path, [&](std::span<const std::byte> bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
            fail(fat_message(error::last("write to standard output"), shown(name.path)));
        return true;
    });
}

void print_volume(mounted_image& mounted) {
    fat::file_system& system = mounted.system();
    const fat::geometry& shape = system.shape();
    const std::uint64_t free = value_or_fail(system.free_clusters(), mounted.image().path());
    const unsigned bits = fat::entry_bits(shape.type) == 28 ? 32 : fat::entry_bits(shape.type);
    fmt::print("type      FAT{}\n", bits);
    fmt::print("label     {}\n", terminal_text(system.label()));
    fmt::print("serial    {:04X}-{:04X}\n", shape.serial >> 16, shape.serial & 0xffff);
    fmt::print("offset    {} bytes in the image\n", mounted.image().volume_offset());
    fmt::print("sectors   {} bytes each\n", shape.sector_bytes);
    fmt::print("clusters  {} of {} bytes\n", shape.cluster_count, shape.cluster_bytes);
    fmt::print("FATs      {}{}\n", shape.fat_count, shape.is_mirrored ? "" : ", one of them active");
    fmt::print("size      {}\n", size_text(std::uint64_t{shape.cluster_count} * shape.cluster_bytes));
    fmt::print("free      {}\n", size_text(free * shape.cluster_bytes));
    fmt::print("state     {}\n", system.was_dirty() ? "not unmounted" : "clean");
}

void print_inode(fat::file_system& system, const image_name& name) {
    const fat::inode_handle file = find_or_fail(system, name.path);
    const fat::inode_status status = system.status(*file);
    fmt::print("path      {}\n", shown(name.path));
    fmt::print("kind      {}\n", status.is_directory ? "directory" : "file");
    fmt::print("size      {} bytes\n", status.size_bytes);
    fmt::print("on disk   {} bytes\n", status.allocated_bytes);
    if (not status.is_directory)
        fmt::print("runs      {}\n", value_or_fail(runs_of(system, *file), shown(name.path)));
    fmt::print("bits      {}\n", attribute_text(status));
    fmt::print("created   {}\n", time_text(status.created));
    fmt::print("modified  {}\n", time_text(status.modified));
    fmt::print("accessed  {}\n", time_text(status.accessed));
}

// Prints the cost of reading a whole file, in blocks of 512 bytes.
void print_counters(fat::file_system& system, const image_name& name, const std::string& strategy) {
    const fat::inode_handle file = find_or_fail(system, name.path);
    std::uint64_t requests = 0;
    if (not file->is_directory) {
        std::array<std::byte, 512> room{};
        fat::run_list::hint hint;
        for (std::uint64_t offset = 0;; ++requests) {
            const std::size_t bytes = value_or_fail(system.read(*file, hint, room, offset), shown(name.path));
            if (bytes == 0) break;
            offset += bytes;
        }
    }
    fmt::print("reads     {} of 512 bytes, strategy {}\n", requests, strategy);
    fmt::print("steps     {} from cluster to cluster in the FAT\n", system.counters().steps.load());
    fmt::print("loads     {} windows of the FAT\n", system.counters().loads.load());
}

void run_stat(const inspect_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how, strategy_of(arguments.strategy));
    if (name.path.empty())
        print_volume(mounted);
    else if (not arguments.wants_counters)
        print_inode(mounted.system(), name);
    if (arguments.wants_counters) print_counters(mounted.system(), name, arguments.strategy);
}

void print_runs_below(fat::file_system& system, const std::string& path) {
    unreadable_objects skipped;
    const auto print = [&](const tree_entry& each) {
        if (each.status.is_directory) return true;
        const auto file = system.find(each.path);
        const auto runs = file ? runs_of(system, **file) : failure(file.error());
        if (runs)
            fmt::print("{:>8} runs {:>12} bytes  {}\n", *runs, each.status.size_bytes, shown(each.path));
        else
            skipped.report(each.path, runs.error());
        return true;
    };
    for_each_below(system, path,
                   {.visit = print, .report = [&](const object_problem& each) { skipped.report(each); }});
    skipped.leave_if_any();
}

void run_map(const inspect_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    fat::file_system& system = mounted.system();
    const fat::inode_handle top = find_or_fail(system, name.path);
    if (top->is_directory) return print_runs_below(system, name.path);
    fmt::print("{:>12} {:>12} {:>16}\n", "in the file", "bytes", "in the image");
    const auto print = [&](const fat::file_system::piece& piece) {
        if (piece.place)
            fmt::print("{:>12} {:>12} {:>16}\n", piece.offset, piece.length,
                       *piece.place + mounted.image().volume_offset());
        else
            fmt::print("{:>12} {:>12} {:>16}\n", piece.offset, piece.length, "zeros");
        return true;
    };
    succeed_or_fail(
        system.for_each_extent(*top, {.offset = 0, .length = system.status(*top).size_bytes}, print),
        shown(name.path));
}

}  // namespace

void add_fat_inspect(command_syntax fat) {
    const auto add = [&](const char* name, const char* what, const char* example, auto run) {
        const auto arguments = std::make_shared<inspect_arguments>();
        const command_syntax command = fat.add_subcommand(name, what).example(example);
        add_image_options(command, arguments->how);
        command
            .add_option("IMAGE:/PATH", arguments->image,
                        "path on the volume, as in disk.img:/notes or disk.img@2:/notes")
            .required();
        command.on_call([arguments, run] { run(*arguments); });
        return std::pair(command, arguments);
    };
    const auto [ls, listing] = add("ls", "list a directory", "sluice fat ls -lR disk.img:/", run_ls);
    ls.add_flag("-l,--long", listing->is_long, "show attributes, size, and modification time");
    ls.add_flag("-R,--recursive", listing->is_recursive, "list subdirectories recursively");
    add("cat", "print a file", "sluice fat cat disk.img:/config.txt", run_cat);
    const auto [stat, status] = add("stat", "show information about a volume, file, or directory",
                                    "sluice fat stat disk.img", run_stat);
    stat.add_flag("--counters", status->wants_counters,
                  "read the file in blocks of 512 bytes and count FAT lookups");
    stat.add_option("--strategy", status->strategy, "cluster lookup: naive, cursor, runs")
        .value_name("NAME")
        .one_of({"naive", "cursor", "runs"})
        .shows_default();
    add("map", "show where files are stored in the image", "sluice fat map disk.img:/kernel.img", run_map);
}

}  // namespace sluice::cli

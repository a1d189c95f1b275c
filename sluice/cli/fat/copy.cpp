// sluice fat get, put, mkfile: data from and to the host.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/progress.hpp"
#include "sluice/cli/fat/tree.hpp"
#include "sluice/io/file_status.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct copy_arguments {
    image_options how;
    std::vector<std::string> operands;
    std::string image;
    std::string size;
    std::string block = "512";
    std::string strategy = "runs";
};

std::string joined(const std::string& directory, const std::string& name) {
    return directory.empty() ? name : directory + "/" + name;
}

// Where an extent does not stand in one file in one piece, it is copied through memory.
result<void> copy_through_memory(fat::device& volume, const fat::file_system::piece& piece,
                                 io::file_handle& target) {
    std::vector<std::byte> room(static_cast<std::size_t>(std::min<std::uint64_t>(piece.length, 1U << 20)));
    for (std::uint64_t done = 0; done < piece.length;) {
        const auto part = std::span(room).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), piece.length - done)));
        if (const auto read = volume.read_at(*piece.place + done, part); not read) return read;
        const auto written = target.write(
            io::io_request<io::const_bytes_type>{.buffers = part, .offset = piece.offset + done});
        if (not written) return failure(written.error());
        if (written->size() != part.size()) return failure({EIO, "write"});
        done += part.size();
    }
    return {};
}

// A file's extents go from the image to the host without passing through us, where the kernel can.
void get_file(mounted_image& mounted, const tree_entry& from, const fs::path& to, progress_bar& progress) {
    fat::file_system& system = mounted.system();
    progress.name(shown(from.path));
    const fat::item_handle file = find_or_fail(system, from.path);
    io::file_handle target = value_or_fail(
        io::file_handle::open({}, to.string(), io::mode::write, io::creation::always_new), to.string());
    (void)value_or_fail(target.truncate(from.status.size_bytes), to.string());  // what stays is zeros
    result<void> copied;
    const auto visited = system.for_each_extent(
        *file, {.offset = 0, .length = from.status.size_bytes}, [&](const fat::file_system::piece& piece) {
            progress.add(piece.length);
            if (not piece.place) return true;
            fat::device& volume = mounted.image().volume();
            const auto place = volume.place_of(*piece.place);
            if (not place) {
                copied = copy_through_memory(volume, piece, target);
                return copied.has_value();
            }
            const auto done = place->file->clone_extents_to(
                target, {.source = {.offset = place->offset, .length = piece.length},
                         .destination_offset = piece.offset});
            if (not done) copied = failure(done.error());
            return copied.has_value();
        });
    succeed_or_fail(visited, shown(from.path));
    succeed_or_fail(copied, to.string());
    succeed_or_fail(io::set_times(target, {.modified = from.status.modified}), to.string());
    succeed_or_fail(target.close(), to.string());
}

// A name from a volume must not lead out of the folder it is put into.
void check_host_name(const std::string& path) {
    for (const fs::path& part : fs::path(path))
        if (part == ".." or part == ".") fail_fat(shown(path) + ": is no name for a file of the host");
}

void run_get(const copy_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::read, arguments.how);
    const std::vector<tree_entry> entries = tree_of(mounted.system(), name.path);
    const bool is_file = not find_or_fail(mounted.system(), name.path)->is_directory;
    const std::string last = name.path.substr(name.path.rfind('/') + 1);  // npos + 1 is 0
    fs::path target =
        arguments.operands.empty() ? fs::path(last.empty() ? "." : last) : fs::path(arguments.operands[0]);
    std::uint64_t total = 0;
    for (const tree_entry& each : entries)
        total += each.status.size_bytes;
    progress_bar progress(total);
    if (is_file) {
        check_host_name(name.path);
        if (fs::is_directory(target)) target /= last;
        return get_file(mounted, entries.front(), target, progress);
    }
    if (not arguments.operands.empty() and fs::is_directory(target) and not last.empty()) target /= last;
    fs::create_directories(target);
    for (const tree_entry& each : entries) {
        const std::string below = name.path.empty() ? each.path : each.path.substr(name.path.size() + 1);
        check_host_name(below);
        if (each.status.is_directory)
            fs::create_directories(target / below);
        else
            get_file(mounted, each, target / below, progress);
    }
}

fat::item_handle open_or_create(fat::file_system& system, const std::string& path) {
    auto found = system.find(path);
    if (not found and found.error() == std::errc::no_such_file_or_directory)
        return value_or_fail(system.create(path, false, fat::attributes::archive), shown(path));
    fat::item_handle file = value_or_fail(std::move(found), shown(path));
    if (file->is_directory) fail_fat(shown(path) + ": is a directory");
    succeed_or_fail(system.truncate(*file, 0), shown(path));
    return file;
}

void put_file(fat::file_system& system, const fs::path& from, const std::string& to, progress_bar& progress) {
    progress.name(shown(to));
    io::file_handle source = value_or_fail(io::file_handle::open({}, from.string()), from.string());
    const std::uint64_t size = value_or_fail(source.maximum_extent(), from.string());
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
    succeed_or_fail(
        system.change(*file,
                      {.modified = std::chrono::time_point_cast<fat::time_point::duration>(status.modified)}),
        shown(to));
}

void make_directory(fat::file_system& system, const std::string& path) {
    const auto made = system.create(path, true, fat::attributes::none);
    if (not made and made.error() != std::errc::file_exists)
        succeed_or_fail(failure(made.error()), shown(path));
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

void run_put(const copy_arguments& arguments) {
    const image_name name = parse_image(arguments.operands.back());
    if (not name.has_path) fail_fat(arguments.operands.back() + ": say where, as in " + name.file + ":/");
    const std::vector<std::string> sources(arguments.operands.begin(), arguments.operands.end() - 1);
    for (const std::string& source : sources)
        if (not fs::exists(source)) fail_fat(source + ": there is no such file or directory");
    mounted_image mounted(name, image_use::write, arguments.how);
    put_all(mounted.system(), name, sources);
    mounted.finish();
}

// The workload of the measurements: a file written from front to back in small pieces.
void run_mkfile(const copy_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    const auto size = parse_size(arguments.size);
    const auto block = parse_size(arguments.block);
    if (not size or not block or *block == 0 or *block > (1 << 30))
        fail_fat(
            "--size and --block are numbers of bytes, with k, m or g behind if need be; a block is 1 byte to "
            "1g");
    mounted_image mounted(name, image_use::write, arguments.how, strategy_of(arguments.strategy));
    fat::file_system& system = mounted.system();
    {
        const fat::item_handle file = open_or_create(system, name.path);
        progress_bar progress(*size);
        std::vector<std::byte> bytes(*block);
        fat::run_list::hint hint;
        for (std::uint64_t offset = 0; offset < *size; offset += bytes.size()) {
            std::ranges::fill(bytes, static_cast<std::byte>(offset / bytes.size()));
            const auto piece = std::span<const std::byte>(bytes).first(
                std::min<std::uint64_t>(bytes.size(), *size - offset));
            succeed_or_fail(system.write(*file, hint, piece, offset), shown(name.path));
            progress.add(piece.size());
        }
    }
    mounted.finish();
}

}  // namespace

void add_fat_copy(command_syntax fat) {
    const auto got = std::make_shared<copy_arguments>();
    const command_syntax get = fat.add_subcommand("get", "copy a file or a tree from a volume");
    get.add_option("IMAGE:/PATH", got->image, "what to copy").required();
    get.add_option("TARGET", got->operands, "where to; by default here, under its name").expected(0, 1);
    add_image_options(get, got->how);
    get.on_call([got] { run_get(*got); });

    const auto given = std::make_shared<copy_arguments>();
    const command_syntax put = fat.add_subcommand("put", "copy files and trees to a volume");
    put.add_option("SOURCE... IMAGE:/PATH", given->operands, "what to copy, and last where to")
        .required()
        .expected(2, -1);
    add_image_options(put, given->how);
    put.on_call([given] { run_put(*given); });

    const auto made = std::make_shared<copy_arguments>();
    const command_syntax mkfile = fat.add_subcommand("mkfile", "write a file of a given size, to measure");
    mkfile.add_option("IMAGE:/PATH", made->image, "the file").required();
    mkfile.add_option("--size", made->size, "how long: 5m").required().value_name("SIZE");
    mkfile.add_option("--block", made->block, "how much to write at once").value_name("SIZE").shows_default();
    mkfile.add_option("--strategy", made->strategy, "how clusters are found: naive, cursor, runs")
        .one_of({"naive", "cursor", "runs"})
        .shows_default();
    add_image_options(mkfile, made->how);
    mkfile.on_call([made] { run_mkfile(*made); });
}

}  // namespace sluice::cli

// sluice fat mkfile: writes a file for measurements.

#include <algorithm>
#include <memory>
#include <span>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/file_import.hpp"
#include "sluice/cli/fat/tree.hpp"

namespace sluice::cli {
namespace {

struct mkfile_arguments {
    image_options how;
    std::string image;
    std::uint64_t size_bytes = 0;
    std::uint64_t block_bytes = 512;
    std::string strategy = "runs";
};

// Writes a file from front to back in small blocks: the workload of the benchmarks.
void run_mkfile(const mkfile_arguments& arguments) {
    const image_name name = parse_image(arguments.image);
    mounted_image mounted(name, image_use::write, arguments.how, strategy_of(arguments.strategy));
    fat::file_system& system = mounted.system();
    {
        const fat::inode_handle file = open_or_create(system, name.path);
        progress_bar progress(arguments.size_bytes);
        std::vector<std::byte> bytes(arguments.block_bytes);
        fat::run_list::hint hint;
        for (std::uint64_t offset = 0; offset < arguments.size_bytes; offset += bytes.size()) {
            std::ranges::fill(bytes, static_cast<std::byte>(offset / bytes.size()));
            const auto piece = std::span<const std::byte>(bytes).first(
                std::min<std::uint64_t>(bytes.size(), arguments.size_bytes - offset));
            succeed_or_fail(system.write(*file, hint, piece, offset), shown(name.path));
            progress.add(piece.size());
        }
    }
    mounted.finish();
}

}  // namespace

void add_fat_mkfile(command_syntax fat) {
    const auto made = std::make_shared<mkfile_arguments>();
    const command_syntax mkfile =
        fat.add_subcommand("mkfile", "write a file of a given size, for measurements")
            .example("sluice fat mkfile --size 100m --block 64k disk.img:/data");
    mkfile.add_option("IMAGE:/PATH", made->image, "file to write").required();
    mkfile.add_option("--size", made->size_bytes, "file size, with an optional suffix k, m, g, or t")
        .required()
        .size_between(0, UINT32_MAX)
        .value_name("SIZE");
    mkfile.add_option("--block", made->block_bytes, "bytes per write")
        .size_between(1, 1U << 30)
        .value_name("SIZE")
        .shows_default();
    mkfile.add_option("--strategy", made->strategy, "cluster lookup: naive, cursor, runs")
        .value_name("NAME")
        .one_of({"naive", "cursor", "runs"})
        .shows_default();
    add_image_options(mkfile, made->how);
    mkfile.on_call([made] { run_mkfile(*made); });
}

}  // namespace sluice::cli

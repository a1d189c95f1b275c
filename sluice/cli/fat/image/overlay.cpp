// sluice fat commit, discard, rebind: applies, removes or rebinds an overlay.

#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/fat/progress.hpp"
#include "sluice/io/path/directory_handle.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* interrupted_commit =
    ": an interrupted commit left a part of it in the image; run 'sluice fat commit' to finish it";

struct overlay_arguments {
    std::string image;
    std::string overlay;
};

// Names are durable only when their directory is.
void sync_directory_of(const std::string& path) {
    const fs::path directory = fs::absolute(path).parent_path();
    auto opened = value_or_fail(io::directory_handle::open({}, directory.string()), directory.string());
    succeed_or_fail(opened.barrier(), directory.string());
}

void write_marker(const std::string& image, const std::string& overlay) {
    const std::string path = commit_marker_of(image);
    auto file =
        value_or_fail(io::file_handle::open({}, path, io::mode::write, io::creation::always_new), path);
    const std::string text = fs::absolute(overlay).string() + "\n";
    const auto bytes = std::as_bytes(std::span(text));
    const auto written = file.write(io::io_request<io::const_bytes_type>{.buffers = bytes, .offset = 0});
    if (not written) fail(fat_message(written.error(), path));
    const auto durable = file.barrier(io::barrier_kind::wait_all);
    if (not durable) fail(fat_message(durable.error(), path));
    sync_directory_of(path);
}

void remove_marker(const std::string& image) {
    if (not exists(commit_marker_of(image))) return;
    remove_or_fail(commit_marker_of(image));
    sync_directory_of(image);
}

std::unique_ptr<overlay_file> open_overlay(const overlay_arguments& arguments, fat::device& image,
                                           std::int64_t modified, overlay_file::purpose wanted) {
    auto opened = overlay_file::open(arguments.overlay, image, modified, wanted);
    if (not opened) fail(opened.error());
    return *std::move(opened);
}

// Returns whether an earlier commit had emptied the overlay; then only the clean-up remains.
bool is_emptied(const std::string& overlay) {
    std::error_code unknown;
    return exists(overlay) and fs::file_size(overlay, unknown) == 0;
}

void tidy_up(const overlay_arguments& arguments) {
    remove_marker(arguments.image);
    remove_or_fail(arguments.overlay);
}

// An interrupted commit can be repeated: the overlay records that it is being committed before the
// image changes, the volume seen through it stays the same throughout, and it is emptied only after
// a barrier of the image. Until then a marker prevents any use of the image without the overlay.
void run_commit(const overlay_arguments& arguments) {
    auto hold = writer_lock::take(arguments.image);
    if (not hold) fail(hold.error().message());
    if (is_emptied(arguments.overlay)) return tidy_up(arguments);
    auto handle = value_or_fail(io::file_handle::open({}, arguments.image, io::mode::write), arguments.image);
    const std::int64_t modified = value_or_fail(modification_of(handle), arguments.image);
    fat::file_device image = value_or_fail(fat::file_device::over(std::move(handle)), arguments.image);
    const auto overlay = open_overlay(arguments, image, modified, overlay_file::purpose::commit);
    fat::overlay_device& device = overlay->device();
    if (device.binding().state == fat::overlay_state::collecting)
        succeed_or_fail(overlay->begin_commit(), arguments.overlay);
    write_marker(arguments.image, arguments.overlay);
    std::uint64_t written = 0;
    {
        progress_bar progress(std::uint64_t{device.held_blocks()} * device.binding().layout.block_bytes);
        progress.name(arguments.overlay);
        succeed_or_fail(device.copy_to(image,
                                       [&](std::uint64_t bytes) {
                                           written += bytes;
                                           progress.add(bytes);
                                       }),
                        arguments.image);
    }
    succeed_or_fail(overlay->empty(), arguments.overlay);
    tidy_up(arguments);
    fmt::print("{}: {} written\n", arguments.image, size_text(written));
}

void run_discard(const overlay_arguments& arguments) {
    auto hold = writer_lock::take(arguments.overlay);
    if (not hold) fail(hold.error().message());
    auto file = value_or_fail(io::file_handle::open({}, arguments.overlay), arguments.overlay);
    fat::overlay_header raw{};
    const auto read = file.read(
        io::io_request<io::bytes_type>{.buffers = std::as_writable_bytes(std::span(&raw, 1)), .offset = 0});
    if (not read) fail(fat_message(read.error(), arguments.overlay));
    const auto binding = fat::decode(raw);
    if (not read->empty() and not fat::has_magic(raw))
        fail(arguments.overlay + ": not an overlay, so it is not removed");
    if (binding and binding->state == fat::overlay_state::committing)
        fail(arguments.overlay + interrupted_commit);
    remove_or_fail(arguments.overlay);
}

void run_rebind(const overlay_arguments& arguments) {
    auto handle = value_or_fail(io::file_handle::open({}, arguments.image), arguments.image);
    const std::int64_t modified = value_or_fail(modification_of(handle), arguments.image);
    fat::file_device image = value_or_fail(fat::file_device::over(std::move(handle)), arguments.image);
    const auto overlay = open_overlay(arguments, image, modified, overlay_file::purpose::rebind);
    if (overlay->device().binding().state == fat::overlay_state::committing)
        fail(arguments.overlay + interrupted_commit);
    succeed_or_fail(overlay->bind_again(image, modified), arguments.overlay);
}

}  // namespace

void add_fat_overlay(command_syntax fat) {
    const auto add = [&](const char* name, const char* what, const char* overlay_help, const char* example,
                         auto run) {
        const auto arguments = std::make_shared<overlay_arguments>();
        const command_syntax command = fat.add_subcommand(name, what).example(example);
        command.add_option("IMAGE", arguments->image, "image of the overlay").required();
        command.add_option("--overlay", arguments->overlay, overlay_help).required().value_name("FILE");
        command.on_call([arguments, run] { run(*arguments); });
    };
    add("commit", "apply an overlay to its image, then remove the overlay", "overlay to apply",
        "sluice fat commit disk.img --overlay try.overlay", run_commit);
    add("discard", "remove an overlay and its changes", "overlay to remove",
        "sluice fat discard disk.img --overlay try.overlay", run_discard);
    add("rebind", "accept a copied or touched image as the base of an overlay", "overlay to update",
        "sluice fat rebind copy.img --overlay try.overlay", run_rebind);
}

}  // namespace sluice::cli

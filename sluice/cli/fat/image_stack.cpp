#include "sluice/cli/fat/image_stack.hpp"

#include <filesystem>
#include <fstream>

#include "sluice/fat/partition.hpp"

namespace sluice::cli {
namespace {

using outcome = std::expected<void, std::string>;

// A part of an overlay may be in the image, which then is no volume anybody should look at.
outcome check_no_commit(const std::string& image) {
    std::ifstream marker(commit_marker_of(image));
    if (not marker) return {};
    std::string overlay;
    std::getline(marker, overlay);
    return std::unexpected(image + ": a commit to it was cut off; 'sluice fat commit " + image +
                           " --overlay " + overlay + "' finishes it");
}

}  // namespace

std::string commit_marker_of(const std::string& image) {
    return image + ".commit";
}

std::expected<std::unique_ptr<image_stack>, std::string> image_stack::open(const image_name& name,
                                                                           image_use use,
                                                                           const image_options& options) {
    std::unique_ptr<image_stack> made(new image_stack);
    outcome done = options.overlay.empty() ? check_no_commit(name.file) : outcome();
    if (done) done = made->open_image(name.file, options.overlay.empty() ? use : image_use::read);
    if (done and not options.overlay.empty()) {
        if (use == image_use::write) {
            auto hold = write_hold::keep_writers_away(name.file);
            if (hold) made->hold_.emplace(*std::move(hold));
            const bool is_elsewhere = not hold and (hold.error() == std::errc::read_only_file_system or
                                                    hold.error() == std::errc::permission_denied);
            if (not hold and not is_elsewhere) return std::unexpected(hold.error().message());
        }
        done = made->open_overlay(options.overlay, use);
    }
    if (done) done = made->find_volume(name);
    if (not done) return std::unexpected(done.error());
    return made;
}

outcome image_stack::open_image(const std::string& path, image_use use) {
    const bool writes = use == image_use::write;
    auto file = io::file_handle::open({}, path, writes ? io::mode::write : io::mode::read);
    if (not file and file.error() == std::errc::no_such_file_or_directory)
        return std::unexpected(path + ": there is no such image");
    if (not file) return std::unexpected(file.error().message());
    if (writes) {
        auto hold = write_hold::take(path);
        if (not hold) return std::unexpected(hold.error().message());
        hold_.emplace(*std::move(hold));
    }
    const auto modified = modification_of(*file);
    if (not modified) return std::unexpected(modified.error().message());
    modified_ = *modified;
    auto device = fat::file_device::over(*std::move(file));
    if (not device) return std::unexpected(path + ": " + device.error().message());
    file_ = std::make_unique<fat::file_device>(*std::move(device));
    return {};
}

outcome image_stack::open_overlay(const std::string& path, image_use use) {
    using enum overlay_file::purpose;
    auto opened = overlay_file::open(path, *file_, modified_, use == image_use::write ? write : read);
    if (not opened) return std::unexpected(opened.error());
    overlay_ = *std::move(opened);
    return {};
}

outcome image_stack::find_volume(const image_name& name) {
    fat::device& whole = overlay_ ? static_cast<fat::device&>(overlay_->device()) : *file_;
    const auto where = fat::find_volume(whole, name.partition);
    if (not where) return std::unexpected(name.file + ": " + where.error().message);
    where_ = *where;
    auto part = fat::part_device::of(whole, where_);
    if (not part) return std::unexpected(name.file + ": " + part.error().message());
    part_ = std::make_unique<fat::part_device>(*std::move(part));
    return {};
}

}  // namespace sluice::cli

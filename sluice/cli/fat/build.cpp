// sluice fat build: a whole image from a directory of the host, the same bytes in every run.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "sluice/base/random.hpp"
#include "sluice/cli/fat/commands.hpp"
#include "sluice/cli/fat/format_arguments.hpp"
#include "sluice/cli/fat/illegal_name_options.hpp"
#include "sluice/cli/fat/image/existing_content.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/cli/fat/put_plan.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

struct build_arguments {
    std::string image;
    std::string from;
    std::string size;
    format_arguments format;
    illegal_name_options names;
    image_options how;  // code page and time zone
    bool force = false;
};

/// A new file in the directory of the image, under a name of its own until it is complete. The
/// destructor removes it unless it was finished. Thread safety: none.
class new_image {
public:
    new_image(const std::string& image, std::uint64_t bytes) : image_(image) {
        directory_ = fs::absolute(image).parent_path();
        path_ = (directory_ / fmt::format(".sluice-{:016x}.tmp", system_random().next_u64())).string();
        auto file = io::file_handle::open({}, path_, io::mode::write, io::creation::only_if_not_exist);
        io::file_handle opened = value_or_fail(std::move(file), image);
        is_created_ = true;
        const auto sized = opened.truncate(bytes);
        if (not sized) remove_and_fail(sized.error());
        auto device = fat::file_device::over(std::move(opened));
        if (not device) remove_and_fail(device.error());
        device_ = std::make_unique<fat::file_device>(*std::move(device));
    }
    new_image(const new_image&) = delete;
    new_image& operator=(const new_image&) = delete;
    ~new_image() { remove(); }

    [[nodiscard]] fat::file_device& device() noexcept { return *device_; }

    /// Makes the file durable and gives it the name of the image, replacing an existing one.
    void finish() {
        succeed_or_fail(device_->barrier(io::barrier_kind::wait_all), image_);
        succeed_or_fail(io::relink(*device_->location_of(0)->file, {}, image_), image_);
        is_created_ = false;
        auto directory =
            value_or_fail(io::directory_handle::open({}, directory_.string()), directory_.string());
        succeed_or_fail(directory.barrier(), directory_.string());
    }

private:
    // The destructor does not run when the constructor leaves.
    [[noreturn]] void remove_and_fail(const error& why) {
        remove();
        fail(fat_message(why, image_));
    }
    void remove() noexcept {
        std::error_code ignored;
        if (std::exchange(is_created_, false)) fs::remove(path_, ignored);
    }

    std::string image_;
    fs::path directory_;
    std::string path_;
    bool is_created_ = false;
    std::unique_ptr<fat::file_device> device_;
};

// Returns the time of the newest file of the tree: the content of the image does not depend on
// later changes. The planner reports objects that cannot be read.
fat::time_point newest_in(const fs::path& top) {
    fat::time_point newest{};
    std::error_code why;
    for (fs::recursive_directory_iterator each(top, why), end; not why and each != end; each.increment(why)) {
        const auto status = io::status_at({}, each->path().string());
        if (status and status->type == io::file_type::regular)
            newest =
                std::max(newest, std::chrono::time_point_cast<fat::time_point::duration>(status->modified));
    }
    return newest;
}

build_moment moment_of(const build_arguments& arguments) {
    build_moment when = build_now();
    if (not when.is_fixed) when = {.time = newest_in(arguments.from), .zone = when.zone, .is_fixed = true};
    if (not arguments.how.time_zone.empty()) when.zone = mount_options_of(arguments.how).value().zone;
    return when;
}

// Allows the replacement of an image of an earlier build; anything else only with --force.
void check_present(const build_arguments& arguments) {
    const auto status = io::status_at({}, arguments.image, io::follow::yes);
    if (not status) return;  // there is none, or creating the new file fails with the reason
    if (status->type != io::file_type::regular)
        fail(arguments.image + ": not a regular file; use 'sluice fat mkfs' and 'put' for a device");
    if (exists(journal_of(arguments.image)))
        fail(fmt::format("{0}: has a journal, {1}; run 'sluice fat repair {0}', or remove the journal",
                         arguments.image, journal_of(arguments.image)));
    io::file_handle file = value_or_fail(io::file_handle::open({}, arguments.image), arguments.image);
    if (users_of(file, arguments.image) == image_users::some) fail(arguments.image + in_use);
    fat::file_device present = value_or_fail(fat::file_device::over(std::move(file)), arguments.image);
    const auto formats = content_of(present, {.offset = 0, .length = present.size_bytes()});
    if (not formats) fail(arguments.image + ": " + formats.error());
    for (const std::string& each : *formats)
        if (each != "vfat" and not arguments.force)
            fail(arguments.image + ": contains " + each + "; use --force to replace it");
}

void fill(fat::file_device& image, const build_arguments& arguments, const build_moment& when) {
    const auto shape = fat::read_geometry(image);
    if (not shape) fail(arguments.image + ": " + shape.error().message());
    const build_clock clock(when.time);
    auto how = mount_options_of(arguments.how).value();  // validated when it was parsed
    how.zone = when.zone;
    const auto system = value_or_fail(fat::file_system::mount(image, *shape, clock, how), arguments.image);
    put_planner planner(*system, policy_of(arguments.names));
    planner.add_entries_of(arguments.from, "");
    carry_out(*system, planner.finish());
    succeed_or_fail(system->unmount(), arguments.image);
}

void run_build(const build_arguments& arguments) {
    (void)value_or_fail(io::directory_handle::open({}, arguments.from), arguments.from);
    const build_moment when = moment_of(arguments);
    const std::uint64_t bytes = parse_size(arguments.size).value();  // validated when it was parsed
    const auto plan = fat::plan_format(bytes, options_of(arguments.format, when));
    if (not plan) fail(fmt::format("{}: {}", arguments.image, plan.error()));
    auto hold = writer_lock::take(arguments.image);
    if (not hold) fail(hold.error().message());
    check_present(arguments);
    new_image image(arguments.image, bytes);
    succeed_or_fail(fat::format(image.device(), *plan), arguments.image);
    fill(image.device(), arguments, when);
    image.finish();
    describe(*plan);
}

}  // namespace

void add_fat_build(command_syntax fat) {
    const auto arguments = std::make_shared<build_arguments>();
    const command_syntax build = fat.add_subcommand("build", "create an image with the files of a directory")
                                     .example("sluice fat build --from boot --size 64m disk.img");
    build.add_option("IMAGE", arguments->image, "image file, replaced when the new one is complete")
        .required();
    build.add_option("--from", arguments->from, "directory to copy").required().value_name("DIR");
    build.add_option("--size", arguments->size, "image size, with an optional suffix k, m, g, or t")
        .required()
        .check(validate_size)
        .value_name("SIZE");
    add_format_options(
        build, arguments->format,
        "volume serial number, in hexadecimal [default: $SOURCE_DATE_EPOCH, or time of newest file]");
    add_illegal_name_options(build, arguments->names);
    add_code_page_option(build, arguments->how);
    add_time_zone_option(build, arguments->how);
    build.add_flag("--force", arguments->force, "replace a file that is not a FAT image");
    build.on_call([arguments] { run_build(*arguments); });
}

}  // namespace sluice::cli

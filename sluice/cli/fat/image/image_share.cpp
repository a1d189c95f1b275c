#include "sluice/cli/fat/image/image_share.hpp"

#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/cli/fat/image/image.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/volume/volume.hpp"
#include "sluice/io/task/call_threads.hpp"

namespace sluice::cli {
namespace {

// The foundation of a mounted volume.
struct foundation {
    std::unique_ptr<image_stack> image;
    system_clock_source clock;
    io::call_threads threads{fat::limits::threads_max};
};

// A FAT volume together with its foundation.
class image_share final : public vfs::volume {
public:
    image_share(std::unique_ptr<foundation> below, io::io_multiplexer& loop,
                std::unique_ptr<fat::file_system> mounted, std::uint64_t number)
        : below_(std::move(below)), volume_(loop, std::move(mounted), number, &below_->threads) {}

    [[nodiscard]] vfs::fs_domain& domain() noexcept override { return volume_.domain(); }
    [[nodiscard]] const vfs::volume_features& features() const noexcept override {
        return volume_.features();
    }
    [[nodiscard]] const vfs::volume_identity& identity() const noexcept override {
        return volume_.identity();
    }
    [[nodiscard]] result<vfs::volume_space> space() noexcept override { return volume_.space(); }
    [[nodiscard]] result<vfs::node_ptr> find(std::string_view path,
                                             vfs::follow_links links) noexcept override {
        return volume_.find(path, links);
    }
    [[nodiscard]] result<vfs::node_ptr> create(std::string_view path,
                                               const vfs::creation_request& wanted) noexcept override {
        return volume_.create(path, wanted);
    }
    void serve_on(std::span<io::io_multiplexer* const> loops) override { volume_.serve_on(loops); }
    [[nodiscard]] vfs::change_feed* changes() noexcept override { return volume_.changes(); }

private:
    std::unique_ptr<foundation> below_;  // first: outlives the volume
    fat::volume volume_;
};

using opened_volume = std::expected<std::shared_ptr<vfs::volume>, std::string>;

[[nodiscard]] opened_volume open_engine(io::io_multiplexer& loop, const served_images::wish& wanted,
                                        std::uint64_t number) {
    const image_name name = parse_image(wanted.name);
    const image_options& options = wanted.options;
    const bool is_read_only = not wanted.is_written;
    const auto refuse = [&](const std::string& why) { return std::unexpected(name.file + ": " + why); };
    auto below = std::make_unique<foundation>();
    auto image = image_stack::open(name, is_read_only ? image_use::read : image_use::write, options);
    if (not image) return std::unexpected(image.error().message);
    below->image = *std::move(image);
    const auto verdict = fat::assess_boot_sector(below->image->volume());
    if (not verdict) return refuse(verdict.error());
    if (auto rejection = rejection_of(*verdict, name.file)) return std::unexpected(*std::move(rejection));
    auto how = mount_options_of(options);
    if (not how) return refuse(how.error());
    how->is_read_only = is_read_only;
    how->is_known_consistent = below->image->is_known_consistent();
    auto mounted = fat::file_system::mount(below->image->volume(), verdict->shape, below->clock, *how);
    if (not mounted) return refuse(mounted.error().message());
    return std::make_shared<image_share>(std::move(below), loop, *std::move(mounted), number);
}

// Returns a number that is not 0 and that no other engine has, in this process or another
// (vfs::file_key::image).
[[nodiscard]] std::uint64_t number_of_engine(secret_random_source& random) {
    return random.next_u64() | 1;
}

}  // namespace

bool is_same_image(const std::string& a, const std::string& b) {
    const image_name one = parse_image(a);
    const image_name other = parse_image(b);
    const auto file = io::status_at({}, one.file, io::follow::yes);
    const auto other_file = io::status_at({}, other.file, io::follow::yes);
    return one.partition == other.partition and file and other_file and file->is_same_inode(*other_file);
}

std::expected<std::shared_ptr<vfs::volume>, std::string> served_images::open(const wish& wanted) {
    std::erase_if(opened_, [](const opened& each) { return each.volume.expired(); });
    const image_name name = parse_image(wanted.name);
    const auto file = io::status_at({}, name.file, io::follow::yes);
    // Reports the reason.
    if (not file) return open_engine(loop_, wanted, number_of_engine(random_));
    const auto refuse = [&](const char* why) { return std::unexpected(name.file + ": " + why); };
    for (const opened& each : opened_) {
        if (not each.file.is_same_inode(*file)) {
            if (each.how.is_written and each.how.is_same_use(wanted))
                return refuse(
                    "the file was replaced since the server opened it; restart the server to serve the new "
                    "one");
            continue;
        }
        const bool is_same =
            parse_image(each.how.name).partition == name.partition and each.how.options == wanted.options;
        if (is_same and wanted.is_written and not each.how.is_written)
            return refuse("already served read-only; restart the server to make it writable");
        if (is_same) {
            if (std::shared_ptr<vfs::volume> volume = each.volume.lock()) return volume;
        } else if ((each.how.is_written and each.how.options.overlay.empty()) or
                   (wanted.is_written and wanted.options.overlay.empty())) {
            return refuse(
                "already served with other options, and writable in one of the shares; give all its shares "
                "the "
                "same options");
        }
    }
    opened_volume volume = open_engine(loop_, wanted, number_of_engine(random_));
    if (volume) opened_.push_back({.how = wanted, .file = *file, .volume = *volume});
    return volume;
}

}  // namespace sluice::cli

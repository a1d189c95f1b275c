#include "sluice/cli/fat/image_share.hpp"

#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/cli/fat/image.hpp"
#include "sluice/fat/boot_sector.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/volume.hpp"
#include "sluice/io/call_threads.hpp"

namespace sluice::cli {
namespace {

// What a mounted volume stands on.
struct foundation {
    std::unique_ptr<image_stack> image;
    system_clock_source clock;
    io::call_threads threads{fat::limits::threads_max};
};

// A FAT volume together with what it stands on.
class image_share final : public vfs::volume {
public:
    image_share(std::unique_ptr<foundation> below, io::io_multiplexer& loop,
                std::unique_ptr<fat::file_system> mounted)
        : below_(std::move(below)), volume_(loop, std::move(mounted), &below_->threads) {}

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

}  // namespace

std::expected<std::unique_ptr<vfs::volume>, std::string> open_image_share(io::io_multiplexer& loop,
                                                                          const std::string& text,
                                                                          bool is_read_only,
                                                                          const image_options& options) {
    const image_name name = parse_image(text);
    const auto refuse = [&](const std::string& why) { return std::unexpected(name.file + ": " + why); };
    auto below = std::make_unique<foundation>();
    auto image = image_stack::open(name, is_read_only ? image_use::read : image_use::write, options);
    if (not image) return std::unexpected(image.error());
    below->image = *std::move(image);
    const auto shape = fat::read_geometry(below->image->volume());
    if (not shape) return refuse(shape.error().message());
    auto how = mount_options_of(options);
    if (not how) return refuse(how.error());
    how->is_read_only = is_read_only;
    how->is_known_sound = below->image->is_known_sound();
    auto mounted = fat::file_system::mount(below->image->volume(), *shape, below->clock, *how);
    if (not mounted) return refuse(mounted.error().message());
    return std::make_unique<image_share>(std::move(below), loop, *std::move(mounted));
}

}  // namespace sluice::cli

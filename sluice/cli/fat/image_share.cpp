#include "sluice/cli/fat/image_share.hpp"

#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/cli/fat/image.hpp"
#include "sluice/fat/boot_sector.hpp"
#include "sluice/fat/partition.hpp"
#include "sluice/fat/volume.hpp"

namespace sluice::cli {
namespace {

// What a mounted volume stands on. Invariant: the members go in the order in which they need each other.
struct foundation {
    std::optional<write_hold> hold;
    std::unique_ptr<fat::file_device> file;
    std::unique_ptr<fat::part_device> part;
    system_clock_source clock;
};

// A FAT volume together with what it stands on.
class image_share final : public vfs::volume {
public:
    image_share(std::unique_ptr<foundation> below, io::io_multiplexer& loop,
                std::unique_ptr<fat::file_system> mounted)
        : below_(std::move(below)), volume_(loop, std::move(mounted)) {}

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
    [[nodiscard]] vfs::change_feed* changes() noexcept override { return volume_.changes(); }

private:
    std::unique_ptr<foundation> below_;  // first: outlives the volume
    fat::volume volume_;
};

std::unexpected<std::string> refuse(const std::string& file, const std::string& why) {
    return std::unexpected(file + ": " + why);
}

}  // namespace

std::expected<std::unique_ptr<vfs::volume>, std::string> open_image_share(io::io_multiplexer& loop,
                                                                          const std::string& text,
                                                                          bool is_read_only) {
    const image_name name = parse_image(text);
    auto below = std::make_unique<foundation>();
    auto file = io::file_handle::open({}, name.file, is_read_only ? io::mode::read : io::mode::write);
    if (not file) return std::unexpected(file.error().message());
    if (not is_read_only) {
        auto hold = write_hold::take(name.file);
        if (not hold) return std::unexpected(hold.error().message());
        below->hold.emplace(*std::move(hold));
    }
    auto device = fat::file_device::over(*std::move(file));
    if (not device) return refuse(name.file, device.error().message());
    below->file = std::make_unique<fat::file_device>(*std::move(device));
    const auto where = fat::find_volume(*below->file, name.partition);
    if (not where) return refuse(name.file, where.error().message);
    auto part = fat::part_device::of(*below->file, *where);
    if (not part) return refuse(name.file, part.error().message());
    below->part = std::make_unique<fat::part_device>(*std::move(part));
    const auto shape = fat::read_geometry(*below->part);
    if (not shape) return refuse(name.file, shape.error().message());
    auto mounted =
        fat::file_system::mount(*below->part, *shape, below->clock, {.is_read_only = is_read_only});
    if (not mounted) return refuse(name.file, mounted.error().message());
    return std::make_unique<image_share>(std::move(below), loop, *std::move(mounted));
}

}  // namespace sluice::cli

#include "sluice/fat/volume/volume.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/fat/volume/node.hpp"
#include "sluice/fat/volume/volume_change_feed.hpp"

namespace sluice::fat {

volume::volume(io::io_multiplexer& multiplexer, std::unique_ptr<file_system> mounted, std::uint64_t number,
               io::call_threads* threads)
    : around_(std::make_unique<volume_context>()) {
    ENSURE(number != 0, "a disk image has a number; files of the host have none");
    around_->owner = this;
    around_->system = std::move(mounted);
    around_->number = number;
    around_->loops = {&multiplexer};
    around_->threads = threads;
    around_->feed = std::make_unique<volume_change_feed>(multiplexer, *around_->system, threads);
    file_system& system = *around_->system;
    features_.is_read_only = system.is_read_only();
    features_.has_short_names = true;
    features_.name_units_max = long_name_units_max;
    features_.type_name = system.shape().type == fat_type::fat32 ? "FAT32" : "FAT";
    identity_.label = system.label();
    if (identity_.label.empty()) identity_.label = "NO NAME";
    identity_.serial = system.shape().serial;
}

volume::~volume() = default;

result<vfs::volume_space> volume::space() noexcept {
    const geometry& shape = around_->system->shape();
    const auto free = around_->system->free_clusters();
    if (not free) return failure(free.error());
    const std::uint64_t free_bytes = std::uint64_t{*free} * shape.cluster_bytes;
    return vfs::volume_space{.total_bytes = std::uint64_t{shape.cluster_count} * shape.cluster_bytes,
                             .free_bytes = free_bytes,
                             .available_bytes = free_bytes,
                             .block_bytes = shape.cluster_bytes,
                             .sector_bytes = shape.sector_bytes};
}

result<vfs::node_ptr> volume::find(std::string_view path, vfs::follow_links) noexcept {
    auto found = around_->system->find(path);
    if (not found) return failure(found.error());
    return std::make_unique<node>(*around_, std::move(*found));
}

result<vfs::node_ptr> volume::create(std::string_view path, const vfs::creation_request& wanted) noexcept {
    const bool is_directory = wanted.kind == vfs::node_kind::directory;
    if (not is_directory and wanted.kind != vfs::node_kind::file) return failure({EINVAL, "create"});
    auto made = around_->system->create(path, is_directory, static_cast<attributes>(wanted.dos));
    if (not made) return failure(made.error());
    around_->feed->record(vfs::change_kind::added, is_directory, around_->system->path_of(**made));
    return std::make_unique<node>(*around_, std::move(*made));
}

void volume::serve_on(std::span<io::io_multiplexer* const> loops) {
    ENSURE(not loops.empty(), "a volume is used on a loop");
    around_->loops.assign(loops.begin(), loops.end());
}

vfs::change_feed* volume::changes() noexcept {
    return around_->feed.get();
}

file_system& volume::mounted() noexcept {
    return *around_->system;
}

}  // namespace sluice::fat

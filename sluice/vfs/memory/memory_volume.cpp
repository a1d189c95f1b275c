#include "sluice/vfs/memory/memory_volume.hpp"

#include "sluice/vfs/limits.hpp"
#include "sluice/vfs/memory/memory_tree.hpp"

namespace sluice::vfs {

memory_volume::memory_volume(io::io_multiplexer& multiplexer, const clock_source& clock,
                             const memory_volume_options& options)
    : tree_(std::make_unique<memory_tree>(*this, multiplexer, clock, options)),
      features_{.is_read_only = options.read_only,
                .has_streams = true,
                .has_extended_attributes = true,
                .has_security = true,
                .has_hard_links = true,
                .has_symlinks = true,
                .has_sparse_files = true,
                .has_block_sharing = options.emulates_block_sharing,
                .has_compression = true,
                .has_exact_times = true,
                .name_units_max = limits::name_units_max,
                .type_name = "memory"},
      identity_{.label = options.label, .serial = options.serial, .created = time_of(clock.utc_now())} {}

memory_volume::~memory_volume() = default;

void memory_volume::set_faults(const memory_faults& faults) noexcept {
    const std::scoped_lock guard(tree_->mutex);
    tree_->options.faults = faults;
    tree_->random.emplace(faults.seed);
}

void memory_volume::emulate_block_sharing() noexcept {
    const std::scoped_lock guard(tree_->mutex);
    tree_->options.emulates_block_sharing = true;
    features_.has_block_sharing = true;
}

memory_quotas& memory_volume::offer_quotas(std::uint32_t acts_as) {
    quotas_ = std::make_unique<memory_quotas>();
    identity_.acts_as = acting_user{.id = acts_as};
    return *quotas_;
}

result<volume_space> memory_volume::space() noexcept {
    const std::scoped_lock guard(tree_->mutex);
    const std::uint64_t left = tree_->room.pages_left * memory_content::page_bytes;
    return volume_space{
        .total_bytes = tree_->options.capacity_bytes, .free_bytes = left, .available_bytes = left};
}

result<node_ptr> memory_volume::find(std::string_view path, follow_links links) noexcept {
    const std::scoped_lock guard(tree_->mutex);
    auto found = tree_->find(path, links);
    if (not found) return failure(found.error());
    return make_memory_node(*tree_, std::move(*found));
}

result<node_ptr> memory_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    const std::scoped_lock guard(tree_->mutex);
    if (const auto may = tree_->may_change(); not may) return failure(may.error());
    if (wanted.kind != node_kind::file and wanted.kind != node_kind::directory)
        return failure({EINVAL, "create"});
    const auto there = tree_->place(path);
    if (not there) return failure(there.error());
    if (there->taken != nullptr) return failure(error::with_path(EEXIST, "create", path));
    if (tree_->draws(tree_->options.faults.create_fails))
        return failure(error::with_path(ENOSPC, "create", path));
    auto file = tree_->make_file(wanted.kind);
    file->status.dos = wanted.dos;
    file->status.is_compressed = there->directory->status.is_compressed;
    if (wanted.permission_bits) file->status.permission_bits = *wanted.permission_bits;
    return make_memory_node(*tree_, tree_->add(*there->directory, there->name, std::move(file)));
}

void memory_volume::serve_on(std::span<io::io_multiplexer* const> loops) {
    tree_->loops.assign(loops.begin(), loops.end());
}

change_feed* memory_volume::changes() noexcept {
    return &tree_->feed;
}

}  // namespace sluice::vfs

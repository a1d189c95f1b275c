#include "sluice/vfs/host_volume.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sluice/io/xattr.hpp"
#include "sluice/vfs/host_attributes.hpp"
#include "sluice/vfs/host_change_feed.hpp"
#include "sluice/vfs/host_name.hpp"
#include "sluice/vfs/host_node.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

bool can_keep_attributes(const io::path_handle& root) noexcept {
    const auto size = io::xattr_bytes(root, metadata_attribute);
    return size.has_value() or size.error().code() != EOPNOTSUPP;
}

// Only trying tells: it depends on how the file system was made.
bool can_share_blocks(const io::path_handle& root) noexcept {
    auto source = io::file_handle::temp_inode(root);
    auto copy = io::file_handle::temp_inode(root);
    if (not source or not copy) return false;
    const std::array<std::byte, 1> some{};
    if (not source->write(io::io_request<io::const_bytes_type>{.buffers = some, .offset = 0})) return false;
    return ::ioctl(copy->descriptor(), FICLONE, source->descriptor()) == 0;
}

std::optional<acting_user> present_user() {
    if (::geteuid() == 0) return std::nullopt;
    acting_user found{.id = ::geteuid(), .groups = {::getegid()}};
    const int count = ::getgroups(0, nullptr);
    if (count <= 0) return found;
    std::vector<gid_t> others(static_cast<std::size_t>(count));
    const int given = ::getgroups(count, others.data());
    if (given > 0) found.groups.insert(found.groups.end(), others.begin(), others.begin() + given);
    return found;
}

result<void> store_attributes(const io::handle& created, const io::file_status& status,
                              const creation_request& wanted, std::string_view name,
                              dot_names dots) noexcept {
    if (wanted.dos == default_attributes(status, name, dots)) return {};
    return store_metadata(created, {.dos = wanted.dos, .is_sparse = false, .born = {}});
}

}  // namespace

host_volume::host_volume(std::unique_ptr<host_tree> tree) noexcept
    : tree_(std::move(tree)), feed_(std::make_unique<host_change_feed>(*tree_)) {}
host_volume::~host_volume() = default;

result<std::unique_ptr<host_volume>> host_volume::open(io::io_multiplexer& multiplexer, io::path_view root,
                                                       const host_volume_options& options) {
    const auto limit = options.follow_links ? io::confinement::beneath : io::confinement::beneath_no_symlinks;
    auto anchor = io::path_handle::open(root, limit);
    if (not anchor) return failure(anchor.error());
    const auto volume_status = io::volume_of(*anchor);
    if (not volume_status) return failure(volume_status.error());
    const auto status = io::status_of(*anchor);
    if (not status) return failure(status.error());
    const bool is_local = volume_status->reach == io::volume_reach::this_host;
    auto tree = std::make_unique<host_tree>(multiplexer, std::move(*anchor), options,
                                            is_local ? tells_all::yes : tells_all::no);
    tree->root_device = status->device;
    tree->root_is_in_memory = volume_status->in_memory;
    if (not is_local) tree->writes.never();
    tree->root_inode = status->inode;
    tree->options.read_only = options.read_only or volume_status->read_only;
    // Also tells, at once, whether the kernel has openat2.
    if (const auto itself = tree->open_exactly({}, follow_links::yes); not itself)
        return failure(itself.error());

    std::unique_ptr<host_volume> opened(new host_volume(std::move(tree)));
    opened->describe(*volume_status);
    opened->identity_.serial = status->device * 0x9e37'79b9'7f4a'7c15ULL ^ status->inode;
    opened->identity_.created = status->born.value_or(status->modified);
    opened->identity_.acts_as = present_user();
    return opened;
}

void host_volume::describe(const io::volume_status& status) {
    const host_volume_options& options = tree_->options;
    tree_->keeps_attributes = can_keep_attributes(tree_->root);
    features_ = {.is_read_only = options.read_only,
                 .has_streams = tree_->keeps_attributes,
                 .has_extended_attributes = tree_->keeps_attributes,
                 .has_security = tree_->keeps_attributes,
                 .has_hard_links = true,
                 .has_symlinks = options.follow_links,
                 .has_sparse_files = true,
                 .has_block_sharing = not options.read_only and can_share_blocks(tree_->root),
                 .name_units_max = limits::name_units_max,
                 .type_name = std::string(status.type_name)};
    identity_.label = options.label;
    if (not identity_.label.empty()) return;
    const auto where = tree_->root.current_path();
    std::string storage;
    if (where) identity_.label = shown_name(split_path(*where).name, storage);
}

result<volume_space> host_volume::space() noexcept {
    const auto status = io::volume_of(tree_->root);
    if (not status) return failure(status.error());
    return volume_space{.total_bytes = status->total_bytes,
                        .free_bytes = status->free_bytes,
                        .available_bytes = status->available_bytes,
                        .block_bytes = status->block_bytes};
}

result<node_ptr> host_volume::find(std::string_view path, follow_links links) noexcept {
    auto opened = tree_->open(path, links);
    if (not opened) return failure(opened.error());
    std::string storage;
    return make_host_node(*tree_, std::move(*opened), host_name(path, storage));
}

result<node_ptr> host_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    if (const auto may = tree_->may_change(); not may) return failure(may.error());
    if (wanted.kind != node_kind::file and wanted.kind != node_kind::directory)
        return failure({EINVAL, "create"});
    const auto there = tree_->place(path);
    if (not there) return failure(there.error());
    if (there->taken) return failure(error::with_path(EEXIST, "create", path));

    const bool is_file = wanted.kind == node_kind::file;
    const unsigned bits = wanted.permission_bits.value_or(is_file ? tree_->options.file_permission_bits
                                                                  : tree_->options.directory_permission_bits);
    io::file_handle file;
    io::handle directory;
    if (is_file) {
        auto made =
            io::file_handle::open(tree_->root, there->path, io::mode::write, io::creation::only_if_not_exist,
                                  io::caching::all, io::open_flag::none, bits);
        if (not made) return failure(made.error());
        file = std::move(*made);
    } else {
        auto made = io::directory_handle::open(tree_->root, there->path, io::mode::none,
                                               io::creation::only_if_not_exist, bits);
        if (not made) return failure(made.error());
        directory = std::move(*made);
    }
    const io::handle& created = is_file ? static_cast<const io::handle&>(file) : directory;
    const auto status =
        io::status_of(created, io::stat_fields::type | io::stat_fields::inode | io::stat_fields::permissions);
    if (not status) return failure(status.error());
    if (tree_->keeps_attributes) {
        const auto name = split_path(there->path).name;
        const auto stored = store_attributes(created, *status, wanted, name, tree_->dots());
        if (not stored) return failure(stored.error());
    }
    if (is_file) return node_ptr(new (*tree_) host_node(*tree_, std::move(file), *status, there->path));
    return node_ptr(new (*tree_) host_node(*tree_, std::move(directory), *status, there->path));
}

void host_volume::serve_on(std::span<io::io_multiplexer* const> loops) {
    tree_->loops.assign(loops.begin(), loops.end());
}

change_feed* host_volume::changes() noexcept {
    return feed_.get();
}

const name_index::counts& host_volume::index_statistics() const noexcept {
    return tree_->index.statistics();
}

}  // namespace sluice::vfs

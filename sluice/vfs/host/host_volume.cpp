#include "sluice/vfs/host/host_volume.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/domain/domain_table.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_change_feed.hpp"
#include "sluice/vfs/host/host_compression.hpp"
#include "sluice/vfs/host/host_name.hpp"
#include "sluice/vfs/host/host_node.hpp"
#include "sluice/vfs/host/host_quotas.hpp"
#include "sluice/vfs/host/new_object.hpp"
#include "sluice/vfs/host/recycle_bin.hpp"
#include "sluice/vfs/host/recycle_sweep.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/host/stream/stream_store_rules.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

bool can_keep_attributes(const io::path_handle& root) noexcept {
    const auto size = io::xattr_bytes(root, metadata_attribute);
    return size.has_value() or size.error().code() != EOPNOTSUPP;
}

// Tests it with a call, because the answer depends on the options of the file system's creation.
bool can_share_blocks(const io::path_handle& root) noexcept {
    auto source = io::file_handle::temp_inode(root);
    auto copy = io::file_handle::temp_inode(root);
    if (not source or not copy) return false;
    const std::array<std::byte, 1> some{};
    if (not source->write(io::io_request<io::const_bytes_type>{.buffers = some, .offset = 0})) return false;
    return ::ioctl(copy->descriptor(), FICLONE, source->descriptor()) == 0;
}

// Returns whether a ring executes uncached reads of the file system without a worker of the kernel.
bool reads_by_ring(std::string_view type) noexcept {
    return type == "ext2/3/4" or type == "xfs" or type == "btrfs";
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

result<found_node> with_status(std::unique_ptr<host_node> node, const io::file_status& status) noexcept {
    const auto shown = node->status_from(status);
    if (not shown) return failure(shown.error());
    return found_node{.node = std::move(node), .status = *shown};
}

found_node with_attributes(std::unique_ptr<host_node> node, const io::file_status& status,
                           const private_attributes& own) noexcept {
    const metadata shown = node->status_from(status, own);
    return found_node{.node = std::move(node), .status = shown};
}

// Applies the requested attributes to a new file. Its status is then the one after.
result<private_attributes> apply_create_metadata(const host_tree& tree, const io::handle& made,
                                                 io::file_status& status, const creation_request& wanted,
                                                 std::string_view path) noexcept {
    // Those that the name implies are not stored, so the client need not ask for them.
    const dos_attributes unasked = default_attributes(status, split_path(path).name, tree.dots());
    if (not tree.keeps_attributes or wanted.dos == unasked) return private_attributes{};
    const stored_metadata stored{.dos = wanted.dos};
    if (const auto done = store_metadata(made, stored); not done) return failure(done.error());
    const auto dressed = io::status_of(made, node_fields);
    if (not dressed) return failure(dressed.error());
    status = *dressed;
    return private_attributes{.metadata = stored};
}

// Gives a new file its attributes, owner and mode; removes it if that fails. The attributes need
// the rights of the owner: they come after the mode, which a umask may have reduced, but before the
// owner.
result<private_attributes> complete(const host_tree& tree, const new_object& begun, const io::handle& made,
                                    io::file_status& status, const creation_request& wanted,
                                    std::string_view path) noexcept {
    const bool is_given_away = tree.options.created.may_change_owner();
    const io::file_status created = status;
    result<void> done;
    if (not is_given_away) done = begun.complete(made, status);
    result<private_attributes> own = private_attributes{};
    if (done) own = apply_create_metadata(tree, made, status, wanted, path);
    if (done and own and is_given_away) done = begun.complete(made, status);
    if (own and done) return own;
    // Another program may have put its directory in the place of the new one.
    if (not begun.may_be(made, created)) return failure(own ? done.error() : own.error());
    // In a directory with the sticky bit, the user may not.
    const account_identity::pause as_process;
    (void)io::unlink(made);
    return failure(own ? done.error() : own.error());
}

result<found_node> make_file(host_tree& tree, const host_node& directory, const host_place& there,
                             const creation_request& wanted) {
    const new_object begun(
        tree.options.created, directory.held(),
        {.asked_bits = wanted.permission_bits, .usual_bits = tree.options.file_permission_bits});
    auto made = tree.make_file(directory.held(), directory.key().volume, split_path(there.path).name,
                               begun.initial_bits());
    if (not made) return failure(made.error());
    const auto own = complete(tree, begun, made->file, made->status, wanted, there.path);
    if (not own) return failure(own.error());
    tree.seen.record(there.path);
    const io::file_status status = made->status;
    return with_attributes(std::make_unique<host_node>(tree, *std::move(made), there.path), status, *own);
}

result<found_node> make_directory(host_tree& tree, const host_node& directory, const host_place& there,
                                  const creation_request& wanted) {
    const new_object begun(tree.options.created, directory.held(),
                           {.kind = node_kind::directory,
                            .asked_bits = wanted.permission_bits,
                            .usual_bits = tree.options.directory_permission_bits});
    auto made = tree.make_directory(directory.held(), split_path(there.path).name, begun.initial_bits());
    if (not made) return failure(made.error());
    const auto own = complete(tree, begun, made->directory, made->status, wanted, there.path);
    if (not own) return failure(own.error());
    return with_attributes(
        std::make_unique<host_node>(tree, std::move(made->directory), made->status, there.path), made->status,
        *own);
}

std::optional<result<found_node>> find_with_data(host_tree& tree, std::string_view path, follow_links links,
                                                 data_access soon) noexcept {
    auto opened = tree.open_known_file(path, links, soon);
    if (not opened) return std::nullopt;
    std::string storage;
    const io::file_status status = opened->status;
    return with_status(std::make_unique<host_node>(tree, *std::move(opened), host_name(path, storage)),
                       status);
}

}  // namespace

host_volume::host_volume(std::unique_ptr<host_tree> tree) noexcept : tree_(std::move(tree)) {
    if (tree_->options.watched) feed_ = std::make_unique<host_change_feed>(*tree_);
    tree_->owner = this;
}
host_volume::~host_volume() = default;

result<std::unique_ptr<host_volume>> host_volume::open(io::io_multiplexer& multiplexer, io::path_view root,
                                                       const host_volume_options& options) {
    const auto limit = options.follow_links ? io::confinement::beneath : io::confinement::beneath_no_symlinks;
    auto anchor = io::path_handle::open(root, limit);
    if (not anchor) return failure(anchor.error());
    return open(multiplexer, *std::move(anchor), options);
}

result<std::unique_ptr<host_volume>> host_volume::open(io::io_multiplexer& multiplexer, io::path_handle root,
                                                       const host_volume_options& options) {
    ENSURE(root.confined() != io::confinement::none, "no path leads out of a volume");
    const bool may_cross = root.confined() == io::confinement::beneath or
                           root.confined() == io::confinement::beneath_no_symlinks;
    const auto volume_status = io::volume_of(root);
    if (not volume_status) return failure(volume_status.error());
    const auto status = io::status_of(root);
    if (not status) return failure(status.error());
    const bool is_local = volume_status->reach == io::volume_reach::this_host;
    auto tree = std::make_unique<host_tree>(multiplexer, std::move(root), options,
                                            is_local ? reports_all_changes::yes : reports_all_changes::no);
    tree->root_device = status->device;
    tree->root_is_in_memory = volume_status->in_memory;
    tree->reads_by_ring = reads_by_ring(volume_status->type_name);
    if (not is_local) tree->writes.never();
    tree->root_inode = status->inode;
    tree->options.read_only = options.read_only or volume_status->read_only;
    // Also detects immediately whether the kernel has openat2.
    if (const auto based = tree->open_store_places(); not based) return failure(based.error());
    if (const auto itself = tree->open_exactly({}, follow_links::yes); not itself)
        return failure(itself.error());

    std::unique_ptr<host_volume> opened(new host_volume(std::move(tree)));
    if (options.domains != nullptr) {
        auto domain = options.domains->domain_of(opened->tree_->root(), options.offload_always);
        if (not domain) return failure(domain.error());
        opened->set_domain(*std::move(domain));
    }
    if (options.domains != nullptr and may_cross) {
        auto crossing =
            options.domains->make_crossing_domain("mounts beneath " + link_of(opened->tree_->root()));
        if (not crossing) return failure(crossing.error());
        if (const auto set = opened->tree_->set_crossing_domain(*std::move(crossing)); not set)
            return failure(set.error());
    }
    opened->describe(*volume_status);
    opened->prepare_bin(*volume_status);
    if (options.offers_quotas) opened->quotas_ = std::make_unique<host_quotas>(opened->tree_->root());
    opened->identity_.serial = status->device * 0x9e37'79b9'7f4a'7c15ULL ^ status->inode;
    opened->identity_.created = time_of(status->born.value_or(status->modified));
    opened->identity_.acts_as = present_user();
    return opened;
}

void host_volume::describe(const io::volume_status& status) {
    const host_volume_options& options = tree_->options;
    tree_->keeps_attributes = can_keep_attributes(tree_->root());
    if (tree_->keeps_attributes) stream_problem_ = stream_store(*tree_).problem();
    features_ = {.is_read_only = options.read_only,
                 .has_streams = tree_->keeps_attributes,
                 .has_extended_attributes = tree_->keeps_attributes,
                 .has_security = tree_->keeps_attributes,
                 .has_hard_links = true,
                 .has_symlinks = options.follow_links,
                 .has_sparse_files = true,
                 .has_block_sharing = not options.read_only and can_share_blocks(tree_->root()),
                 .has_compression = not options.read_only and can_mark_compressed(tree_->root()),
                 .has_exact_times = tree_->keeps_attributes,
                 .has_short_names = options.short_names,
                 .name_units_max = limits::name_units_max,
                 .type_name = std::string(status.type_name)};
    identity_.label = options.label;
    if (not identity_.label.empty()) return;
    const auto where = tree_->root().current_path();
    std::string storage;
    if (where) identity_.label = shown_name(split_path(*where).name, storage);
}

// A bin that cannot be used makes deletions fail. It does not keep the server from its other
// shares.
void host_volume::prepare_bin(const io::volume_status& status) {
    if (not tree_->options.recycle or tree_->options.read_only) return;
    const bool is_fat = status.type_name == "fat" or status.type_name == "exfat";
    tree_->has_modes = not is_fat;
    tree_->bin_state.lacks_ages.store(is_fat, std::memory_order_relaxed);
    recycle_bin(*tree_).prepare();
}

result<volume_space> host_volume::space() noexcept {
    const auto status = io::volume_of(tree_->root());
    if (not status) return failure(status.error());
    return volume_space{.total_bytes = status->total_bytes,
                        .free_bytes = status->free_bytes,
                        .available_bytes = status->available_bytes,
                        .block_bytes = status->block_bytes};
}

result<node_ptr> host_volume::find(std::string_view path, follow_links links) noexcept {
    auto found = tree_->open(path, links, name_match::any_case);
    if (not found) return failure(tree_->as_crossing(found.error()));
    std::string storage;
    return make_host_node(*tree_, std::move(found->open), host_name(path, storage));
}

result<found_node> host_volume::find_with_status(std::string_view path, follow_links links, data_access soon,
                                                 name_match match) noexcept {
    if (auto opened = find_with_data(*tree_, path, links, soon)) return *std::move(opened);
    auto found = tree_->open(path, links, match);
    if (not found) return failure(tree_->as_crossing(found.error()));
    const auto status = io::status_of(found->open, node_fields);
    if (not status) return failure(status.error());
    if (tree_->is_excluded(found->open, *status)) return failure(tree_->error_of_excluded(path));
    std::string storage;
    const std::string_view name = host_name(path, storage);
    if (found->is_as_spelled and status->type == io::file_type::regular) {
        tree_->seen.record(name);
        if (auto opened = find_with_data(*tree_, path, links, soon)) return *std::move(opened);
    }
    return with_status(std::make_unique<host_node>(*tree_, std::move(found->open), *status, name), *status);
}

result<found_node> host_volume::find_directory(std::string_view path) noexcept {
    auto opened = tree_->open_directory(path);
    if (not opened) return failure(tree_->as_crossing(opened.error()));
    const auto status = io::status_of(*opened, node_fields);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::directory) return failure(error::with_path(ENOTDIR, "find", path));
    if (tree_->is_excluded(*opened, *status)) return failure(error::with_path(ENOENT, "find", path));
    std::string storage;
    return with_status(
        std::make_unique<host_node>(*tree_, std::move(*opened), *status, host_name(path, storage)), *status);
}

result<node_ptr> host_volume::create(std::string_view path, const creation_request& wanted) noexcept {
    if (const auto valid = check_path(path); not valid) return failure(valid.error());
    const path_parts parts = split_path(path);
    const auto parent = find_directory(parts.parent);
    if (not parent) {
        // The missing name is not the requested one, but a directory of its path.
        const bool is_missing =
            parent.error() == std::errc::no_such_file_or_directory or parent.error() == std::errc::no_link;
        return failure(is_missing ? error::with_path(ENOTDIR, "create", path) : parent.error());
    }
    auto made = create_in(*parent->node, parts.name, wanted);
    if (not made) return failure(made.error());
    return std::move(made->node);
}

result<found_node> host_volume::create_in(node& directory, std::string_view name,
                                          const creation_request& wanted) noexcept {
    if (const auto may = tree_->may_change(); not may) return failure(may.error());
    if (wanted.kind != node_kind::file and wanted.kind != node_kind::directory)
        return failure({EINVAL, "create"});
    const auto* const parent = dynamic_cast<host_node*>(&directory);
    if (parent == nullptr or parent->kind() != node_kind::directory) return failure({ENOTDIR, "create"});
    const auto there = tree_->place_in(parent->held(), parent->known_path(), name);
    if (not there) return failure(tree_->as_crossing(there.error()));
    if (there->taken) return failure(error::with_path(EEXIST, "create", there->path));
    return tree_->as_crossing(wanted.kind == node_kind::file
                                  ? make_file(*tree_, *parent, *there, wanted)
                                  : make_directory(*tree_, *parent, *there, wanted));
}

bool host_volume::needs_tidying() const noexcept {
    return tree_->has_ages_in_bin() and not tree_->options.read_only;
}

std::string host_volume::take_recycle_problem() noexcept {
    return tree_->bin_state.problem.take();
}

bool host_volume::tidy(std::optional<std::chrono::system_clock::time_point> now) noexcept {
    if (not needs_tidying()) return false;
    if (tree_->bin_state.lacks_ages.load(std::memory_order_relaxed)) {
        if (not tree_->bin_state.has_reported_that.exchange(true))
            tree_->bin_state.problem.set(tree_->options.recycle->directory +
                                         ": 'days' and 'size' have no effect, because the file system does "
                                         "not store when a file is moved");
        sweep_.reset();
        return false;
    }
    if (sweep_ == nullptr) sweep_ = std::make_unique<recycle_sweep>(*tree_, now);
    const auto begun = std::chrono::steady_clock::now();
    const std::uint64_t seen = sweep_->entries();
    while (sweep_->step()) {
        const bool is_enough = sweep_->entries() - seen >= limits::swept_entries_per_part or
                               std::chrono::steady_clock::now() - begun >= limits::sweep_part_max;
        if (is_enough) return true;
    }
    sweep_.reset();
    return false;
}

void host_volume::serve_on(std::span<io::io_multiplexer* const> loops) {
    tree_->loops.assign(loops.begin(), loops.end());
}

fs_domain* host_volume::crossing_domain() noexcept {
    return tree_->crossing_domain();
}

change_feed* host_volume::changes() noexcept {
    return feed_.get();
}

name_index::counts host_volume::index_statistics() const noexcept {
    return tree_->index.statistics();
}

std::string host_volume::explain_stream_problem() const {
    return stream_problem_ ? explain_unusable_store(tree_->store_base(), *stream_problem_) : std::string();
}

}  // namespace sluice::vfs

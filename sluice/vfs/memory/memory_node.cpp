#include <algorithm>
#include <mutex>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/vfs/loop_bound_file.hpp"
#include "sluice/vfs/memory/memory_tree.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_children.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

[[nodiscard]] file_key key_of(const memory_file& file) noexcept {
    return {.image = file.status.volume, .volume = file.status.volume, .file = file.status.id, .stream = 0};
}

[[nodiscard]] name_identity identity_in(const memory_file& file) noexcept {
    return {.key = key_of(file), .changed = file.status.changed};
}

class memory_listing final : public directory_listing {
public:
    memory_listing(memory_tree& tree, memory_entry_ptr directory)
        : tree_(tree), directory_(std::move(directory)) {}
    ~memory_listing() override {
        const std::scoped_lock guard(tree_.mutex);  // may destroy the last reference to a file
        directory_.reset();
        shown_.reset();
    }

    // Continues after the last key, so that concurrent additions and removals are harmless.
    [[nodiscard]] result<const listed_name*> next() noexcept override {
        const std::scoped_lock guard(tree_.mutex);
        const auto& children = directory_->file->children;
        const auto found = has_begun_ ? children.upper_bound(last_) : children.begin();
        if (found == children.end()) return nullptr;
        has_begun_ = true;
        last_ = found->first;
        name_ = found->second->name;
        shown_ = found->second;
        current_.leads_nowhere = false;
        if (shown_->file->status.kind == node_kind::symlink) {
            const std::string path = path_of(*shown_);
            auto target = tree_.find(path, follow_links::yes);
            current_.leads_nowhere = not target.has_value();
            if (target) shown_ = std::move(*target);
        }
        current_.name = name_;
        current_.status = status_of(*shown_->file);
        return &current_;
    }
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        const std::scoped_lock guard(tree_.mutex);
        ENSURE(shown_ != nullptr, "no name was returned");
        return shown_->file->security;
    }

    [[nodiscard]] static metadata status_of(const memory_file& file) {
        metadata status = file.status;
        status.size_bytes = status.kind == node_kind::symlink ? file.link_target.size() : file.content.size();
        status.allocated_bytes = file.content.allocated_bytes();
        return status;
    }

private:
    memory_tree& tree_;
    memory_entry_ptr directory_;
    bool has_begun_ = false;
    std::string last_;
    std::string name_;
    memory_entry_ptr shown_;  // to which current_ refers
    listed_name current_;
};

/// A file, directory or link; with a stream, that stream. Thread safety: any thread; the volume's
/// mutex guards all of it.
class memory_node final : public node,
                          public node_data,
                          public node_names,
                          public node_attached,
                          public node_children {
public:
    memory_node(memory_tree& tree, memory_entry_ptr entry, std::shared_ptr<memory_stream> stream)
        : node(tree.owner.domain()),
          tree_(tree),
          entry_(std::move(entry)),
          file_(entry_->file),
          stream_(std::move(stream)),
          found_as_(stream_ != nullptr ? node_kind::file : file_->status.kind) {}

    ~memory_node() override {
        const std::scoped_lock guard(tree_.mutex);  // may destroy the last reference to a file
        entry_.reset();
        file_.reset();
        stream_.reset();
    }

    [[nodiscard]] node_kind kind() const noexcept override {
        const std::scoped_lock guard(tree_.mutex);
        return stream_ != nullptr ? node_kind::file : file_->status.kind;
    }
    [[nodiscard]] file_key key() const noexcept override;
    [[nodiscard]] std::string path() const override {
        const std::scoped_lock guard(tree_.mutex);
        return path_of(*entry_);
    }
    [[nodiscard]] std::string stream_name() const override {
        const std::scoped_lock guard(tree_.mutex);
        return stream_ == nullptr ? std::string() : stream_->name;
    }
    [[nodiscard]] result<metadata> status() noexcept override;
    [[nodiscard]] result<void> change(const metadata_change& wanted) noexcept override;
    [[nodiscard]] io::task<result<void>> co_flush(io::call_cancellation* by) noexcept override;
    [[nodiscard]] node_data* data() noexcept override {
        return found_as_ == node_kind::file ? this : nullptr;
    }
    [[nodiscard]] node_names* names() noexcept override { return this; }
    [[nodiscard]] node_attached* attached() noexcept override { return this; }
    [[nodiscard]] node_children* children() noexcept override {
        return found_as_ == node_kind::directory ? this : nullptr;
    }

    [[nodiscard]] bool transfers_at_once() const noexcept override {
        const std::scoped_lock guard(tree_.mutex);
        return tree_.options.faults.transfers_at_once and stream_ == nullptr;
    }
    [[nodiscard]] result<void> open_data(data_access wanted) noexcept override;
    [[nodiscard]] io::task<result<std::size_t>> co_read(std::span<std::byte> into, std::uint64_t offset,
                                                        io::call_cancellation* by) noexcept override;
    [[nodiscard]] io::task<result<void>> co_write(std::span<const std::byte> from, std::uint64_t offset,
                                                  io::call_cancellation* by) noexcept override;
    [[nodiscard]] result<void> truncate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> allocate(std::uint64_t size_bytes) noexcept override;
    [[nodiscard]] result<void> zero(std::uint64_t offset, std::uint64_t length,
                                    bool frees_blocks) noexcept override;
    [[nodiscard]] result<std::span<io::extent_pair>> allocated_ranges(
        std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept override;
    [[nodiscard]] result<std::uint64_t> clone_to(node& destination, io::extent_pair source,
                                                 std::uint64_t destination_offset,
                                                 bool only_shared) noexcept override;

    [[nodiscard]] result<void> rename(std::string_view path, when_taken taken) noexcept override;
    [[nodiscard]] result<void> link(std::string_view path, when_taken taken) noexcept override;
    [[nodiscard]] result<name_place> place() noexcept override;
    [[nodiscard]] result<name_identity> identity_of(std::string_view name) noexcept override;
    [[nodiscard]] result<void> remove() noexcept override;
    [[nodiscard]] result<std::string> read_link() noexcept override;
    [[nodiscard]] result<void> become_link(std::string_view target) noexcept override;

    [[nodiscard]] result<std::vector<stream_info>> streams() noexcept override;
    [[nodiscard]] result<metadata> file_status() noexcept override;
    [[nodiscard]] result<node_ptr> open_stream(const stream_request& wanted) noexcept override;
    [[nodiscard]] result<std::vector<extended_attribute>> extended_attributes() noexcept override;
    [[nodiscard]] result<void> set_extended_attribute(std::string_view name,
                                                      std::span<const std::byte> value) noexcept override;
    [[nodiscard]] result<std::vector<std::byte>> security() noexcept override {
        const std::scoped_lock guard(tree_.mutex);
        return file_->security;
    }
    [[nodiscard]] result<void> set_security(std::span<const std::byte> descriptor) noexcept override;
    [[nodiscard]] result<std::unique_ptr<directory_listing>> list() noexcept override;

    [[nodiscard]] memory_file& file() const noexcept { return *file_; }

private:
    [[nodiscard]] memory_content& content() const noexcept {
        return stream_ != nullptr ? stream_->content : file_->content;
    }
    // Returns ENOENT for a removed stream, EBADF without access.
    [[nodiscard]] result<void> may_use(bool is_granted) const noexcept;
    [[nodiscard]] result<void> may_write() const noexcept;
    [[nodiscard]] result<void> may_move() const noexcept;
    [[nodiscard]] bool fits(std::uint64_t end) const noexcept;
    [[nodiscard]] result<void> write_at(std::span<const std::byte> from, std::uint64_t offset);
    [[nodiscard]] result<void> rename_stream(std::string_view name, when_taken taken);
    [[nodiscard]] result<void> rename_over(const memory_place& there);
    void has_changed(bool is_content) {
        tree_.touch(*file_, is_content);
        const bool is_of_file = is_content and stream_ == nullptr;
        tree_.record(is_of_file ? change_kind::modified : change_kind::attributes, *entry_);
    }
    [[nodiscard]] result<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset);
    [[nodiscard]] io::task<void> co_delay() noexcept;
    // Executes a transfer in the right domain, after a delay.
    template <class Call>
    [[nodiscard]] io::task<std::invoke_result_t<Call&>> co_run(Call call,
                                                               io::call_cancellation* by) noexcept {
        co_await co_delay();
        if (domain().is_inline()) {
            const fs_domain::inline_call now(domain());
            co_return call();
        }
        co_return co_await domain().offload(loop_here(tree_.loops), by, std::move(call));
    }

    memory_tree& tree_;
    memory_entry_ptr entry_;
    std::shared_ptr<memory_file> file_;
    std::shared_ptr<memory_stream> stream_;
    const node_kind found_as_;  // determines its parts
    data_access granted_;
};

file_key memory_node::key() const noexcept {
    const std::scoped_lock guard(tree_.mutex);
    file_key found = key_of(*file_);
    if (stream_ == nullptr) return found;
    found.stream = stream_number(stream_->name);
    return found;
}

result<void> memory_node::may_use(bool is_granted) const noexcept {
    if (not is_granted) return failure({EBADF, "use data"});
    if (stream_ != nullptr and stream_->is_removed) return failure({ENOENT, "use stream"});
    return {};
}

result<void> memory_node::may_write() const noexcept {
    if (tree_.is_stopped()) return failure({EIO, "write"});
    return may_use(granted_.write);
}

result<void> memory_node::may_move() const noexcept {
    if (entry_ == tree_.root) return failure({EBUSY, "change the root's name"});
    if (entry_->parent == nullptr) return failure({ENOENT, "change a name"});
    return tree_.may_change();
}

result<metadata> memory_node::status() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (tree_.draws(tree_.options.faults.status_fails)) return failure({EIO, "status"});
    metadata found = memory_listing::status_of(*file_);
    if (stream_ == nullptr) return found;
    if (stream_->is_removed) return failure({ENOENT, "stream"});
    found.kind = node_kind::file;
    found.size_bytes = stream_->content.size();
    found.allocated_bytes = stream_->content.allocated_bytes();
    return found;
}

result<void> memory_node::change(const metadata_change& wanted) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = tree_.may_change(); not may) return may;
    if (wanted.is_empty()) return {};
    metadata& status = file_->status;
    if (wanted.born) status.born = *wanted.born;
    if (wanted.accessed) status.accessed = *wanted.accessed;
    if (wanted.modified) status.modified = *wanted.modified;
    if (wanted.dos) status.dos = *wanted.dos;
    if (wanted.is_sparse) status.is_sparse = *wanted.is_sparse;
    if (wanted.is_compressed) status.is_compressed = *wanted.is_compressed;
    has_changed(false);
    if (wanted.changed) status.changed = *wanted.changed;
    return {};
}

result<void> memory_node::open_data(data_access wanted) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (kind() != node_kind::file) return failure({ENXIO, "open data"});
    if (wanted.write and tree_.options.read_only) return failure({EROFS, "open data"});
    granted_.read = granted_.read or wanted.read;
    granted_.write = granted_.write or wanted.write;
    return {};
}

io::task<void> memory_node::co_delay() noexcept {
    std::chrono::nanoseconds pause{0};
    {
        const std::scoped_lock guard(tree_.mutex);
        const auto most = tree_.options.faults.delay_max.count();
        if (most <= 0) co_return;
        pause = std::chrono::nanoseconds(tree_.random->below(static_cast<std::uint64_t>(most) + 1));
    }
    (void)co_await io::co_sleep(loop_here(tree_.loops), deadline(pause));
}

io::task<result<std::size_t>> memory_node::co_read(std::span<std::byte> into, std::uint64_t offset,
                                                   io::call_cancellation* by) noexcept {
    return co_run([=, this] { return read_at(into, offset); }, by);
}

result<std::size_t> memory_node::read_at(std::span<std::byte> into, std::uint64_t offset) {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = may_use(granted_.read); not may) return failure(may.error());
    if (tree_.draws(tree_.options.faults.read_fails)) return failure(error(EIO, "read"));
    return content().read(into, offset);
}

bool memory_node::fits(std::uint64_t end) const noexcept {
    return end <= (stream_ != nullptr ? tree_.options.stream_bytes_max : INT64_MAX);
}

result<void> memory_node::write_at(std::span<const std::byte> from, std::uint64_t offset) {
    if (const auto may = may_write(); not may) return may;
    if (from.empty()) return {};
    if (offset > INT64_MAX - from.size()) return failure({EFBIG, "write"});
    if (not fits(offset + from.size()) or not content().write(from, offset))
        return failure({ENOSPC, "write"});
    has_changed(true);
    return {};
}

io::task<result<void>> memory_node::co_write(std::span<const std::byte> from, std::uint64_t offset,
                                             io::call_cancellation* by) noexcept {
    const auto write = [=, this]() -> result<void> {
        const std::scoped_lock guard(tree_.mutex);
        if (tree_.draws(tree_.options.faults.write_fails)) return failure(error(EIO, "write"));
        return write_at(from, offset);
    };
    return co_run(write, by);
}

io::task<result<void>> memory_node::co_flush(io::call_cancellation* by) noexcept {
    const auto flush = [this]() -> result<void> {
        const std::scoped_lock guard(tree_.mutex);
        if (tree_.draws(tree_.options.faults.write_fails)) return failure(error(EIO, "flush"));
        return {};
    };
    return co_run(flush, by);
}

result<void> memory_node::truncate(std::uint64_t size_bytes) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = may_write(); not may) return may;
    if (not fits(size_bytes)) return failure({stream_ != nullptr ? ENOSPC : EFBIG, "truncate"});
    content().truncate(size_bytes);
    has_changed(true);
    return {};
}

result<void> memory_node::allocate(std::uint64_t size_bytes) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = may_write(); not may) return may;
    const std::uint64_t held = content().allocated_bytes();
    const std::uint64_t left = tree_.room.pages_left * memory_content::page_bytes;
    if (size_bytes > held and size_bytes - held > left) return failure({ENOSPC, "allocate"});
    return {};
}

result<void> memory_node::zero(std::uint64_t offset, std::uint64_t length, bool frees_blocks) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = may_write(); not may) return may;
    content().zero(offset, length, frees_blocks);
    has_changed(true);
    return {};
}

result<std::span<io::extent_pair>> memory_node::allocated_ranges(
    std::uint64_t offset, std::uint64_t length, std::span<io::extent_pair> storage) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = may_use(granted_.read or granted_.write); not may) return failure(may.error());
    if (storage.empty()) return failure({EINVAL, "list ranges"});
    return content().ranges(offset, length, storage);
}

result<std::uint64_t> memory_node::clone_to(node& destination, io::extent_pair source,
                                            std::uint64_t destination_offset, bool only_shared) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    auto* const other = dynamic_cast<memory_node*>(&destination);
    const bool has_no_sharing = only_shared and not tree_.options.emulates_block_sharing;
    if (has_no_sharing or other == nullptr) return failure({EOPNOTSUPP, "clone"});
    if (const auto may = may_use(granted_.read); not may) return failure(may.error());
    if (source.offset >= content().size()) return 0U;
    const std::uint64_t length = std::min(source.length, content().size() - source.offset);
    if (length > tree_.options.capacity_bytes) return failure({ENOSPC, "clone"});
    std::vector<std::byte> copy(static_cast<std::size_t>(length));
    ENSURE(content().read(copy, source.offset) == copy.size());
    if (const auto done = other->write_at(copy, destination_offset); not done) return failure(done.error());
    return length;
}

result<void> memory_node::rename(std::string_view path, when_taken taken) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (stream_ != nullptr) return rename_stream(path, taken);
    if (const auto may = may_move(); not may) return may;
    const auto there = tree_.place(path);
    if (not there) return failure(there.error());
    if (there->taken != nullptr and there->taken != entry_ and taken == when_taken::refuse)
        return failure(error::with_path(EEXIST, "rename", path));
    // Only a directory can be above what it is moved to.
    for (const memory_file* above = there->directory; above != nullptr;
         above = above->self != nullptr ? above->self->parent : nullptr)
        if (above == file_.get()) return failure({EINVAL, "rename"});
    if (there->taken != nullptr) {
        if (const auto freed = rename_over(*there); not freed) return freed;
    }
    if (entry_->parent == there->directory and entry_->name == there->name) return {};
    tree_.move(entry_, *there->directory, there->name);
    return {};
}

// Removes the existing file at a place, unless it is this file.
result<void> memory_node::rename_over(const memory_place& there) {
    if (there.taken == entry_) return {};
    const memory_file& other = *there.taken->file;
    const bool is_directory = file_->status.kind == node_kind::directory;
    const bool meets_directory = other.status.kind == node_kind::directory;
    if (meets_directory and not is_directory) return failure({EISDIR, "rename"});
    if (is_directory and not meets_directory) return failure({ENOTDIR, "rename"});
    if (not other.children.empty()) return failure({ENOTEMPTY, "rename"});
    tree_.remove(*there.taken);
    return {};
}

result<void> memory_node::rename_stream(std::string_view name, when_taken taken) {
    if (const auto may = tree_.may_change(); not may) return may;
    if (const auto valid = check_stream_name(name); not valid) return valid;
    if (stream_->is_removed) return failure({ENOENT, "rename stream"});
    auto& streams = file_->streams;
    const auto found = streams.find(fold(name));
    if (found != streams.end() and found->second != stream_) {
        if (taken == when_taken::refuse) return failure(error::with_path(EEXIST, "rename stream", name));
        found->second->is_removed = true;
        streams.erase(found);
    }
    streams.erase(fold(stream_->name));
    stream_->name = name;
    streams.emplace(fold(name), stream_);
    has_changed(false);
    return {};
}

result<void> memory_node::link(std::string_view path, when_taken taken) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (stream_ != nullptr) return failure({EOPNOTSUPP, "link stream"});
    if (const auto may = may_move(); not may) return may;
    if (kind() == node_kind::directory) return failure({EPERM, "link a directory"});
    const auto there = tree_.place(path);
    if (not there) return failure(there.error());
    if (there->taken != nullptr) {
        if (taken == when_taken::refuse) return failure(error::with_path(EEXIST, "link", path));
        if (there->taken->file == file_) return {};
        if (there->taken->file->status.kind == node_kind::directory) return failure({EISDIR, "link"});
        tree_.remove(*there->taken);
    }
    (void)tree_.add(*there->directory, there->name, file_);
    tree_.touch(*file_, false);
    return {};
}

result<name_place> memory_node::place() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (entry_->parent == nullptr)
        return failure({path_of(*entry_).empty() ? EBUSY : ENOENT, "find the name"});
    return name_place{
        .directory = key_of(*entry_->parent), .name = entry_->name, .identity = identity_in(*file_)};
}

result<name_identity> memory_node::identity_of(std::string_view name) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    const auto found = file_->children.find(fold(name));
    if (found == file_->children.end()) return failure({ENOENT, "identify"});
    return identity_in(*found->second->file);
}

result<void> memory_node::remove() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (stream_ != nullptr) {
        if (const auto may = tree_.may_change(); not may) return may;
        if (stream_->is_removed) return failure({ENOENT, "remove stream"});
        stream_->is_removed = true;
        file_->streams.erase(fold(stream_->name));
        has_changed(false);
        return {};
    }
    if (const auto may = may_move(); not may) return may;
    if (not file_->children.empty()) return failure({ENOTEMPTY, "remove"});
    tree_.remove(*entry_);
    return {};
}

result<std::string> memory_node::read_link() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (kind() != node_kind::symlink) return failure({EINVAL, "read link"});
    return file_->link_target;
}

result<void> memory_node::become_link(std::string_view target) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (stream_ != nullptr) return failure({EOPNOTSUPP, "link stream"});
    if (const auto may = may_move(); not may) return may;
    const bool is_back = kind() == node_kind::symlink and target.empty();
    if (file_->content.size() != 0 or not file_->children.empty())
        return failure({ENOTEMPTY, "become a link"});
    if (kind() == node_kind::file and file_->status.links > 1) return failure({EMLINK, "become a link"});
    if (target.empty() and not is_back) return failure({EINVAL, "become a link"});
    // A new file with the same name, as on a host.
    auto fresh = tree_.make_file(is_back ? node_kind::file : node_kind::symlink);
    fresh->link_target = target;
    memory_file& directory = *entry_->parent;
    const std::string name = entry_->name;
    tree_.remove(*entry_);
    entry_ = tree_.add(directory, name, std::move(fresh));
    file_ = entry_->file;
    granted_ = {};
    return {};
}

result<std::vector<stream_info>> memory_node::streams() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    std::vector<stream_info> found;
    for (const auto& [folded, each] : file_->streams)
        found.push_back({.name = each->name,
                         .size_bytes = each->content.size(),
                         .allocated_bytes = each->content.allocated_bytes()});
    return found;
}

result<metadata> memory_node::file_status() noexcept {
    if (stream_ == nullptr) return node_attached::file_status();
    const std::scoped_lock guard(tree_.mutex);
    return memory_listing::status_of(*file_);
}

result<node_ptr> memory_node::open_stream(const stream_request& wanted) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (stream_ != nullptr or kind() == node_kind::symlink) return failure({EOPNOTSUPP, "open stream"});
    if (const auto valid = check_stream_name(wanted.name); not valid) return failure(valid.error());
    auto found = file_->streams.find(fold(wanted.name));
    if (found == file_->streams.end()) {
        if (not wanted.create) return failure(error::with_path(ENOENT, "find stream", wanted.name));
        if (const auto may = tree_.may_change(); not may) return failure(may.error());
        auto made = std::make_shared<memory_stream>(tree_.room);
        made->name = wanted.name;
        found = file_->streams.emplace(fold(wanted.name), std::move(made)).first;
        has_changed(false);
    } else if (wanted.create and wanted.exclusive) {
        return failure(error::with_path(EEXIST, "create stream", wanted.name));
    }
    return std::make_unique<memory_node>(tree_, entry_, found->second);
}

result<std::vector<extended_attribute>> memory_node::extended_attributes() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    std::vector<extended_attribute> found;
    for (const auto& [folded, each] : file_->attributes)
        found.push_back(each);
    return found;
}

result<void> memory_node::set_extended_attribute(std::string_view name,
                                                 std::span<const std::byte> value) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = tree_.may_change(); not may) return may;
    if (const auto valid = check_stream_name(name); not valid) return valid;
    std::string folded = fold(name);
    if (value.empty()) {
        file_->attributes.erase(folded);
    } else {
        const auto held = file_->attributes.try_emplace(std::move(folded)).first;
        if (held->second.name.empty()) held->second.name = name;
        held->second.value.assign(value.begin(), value.end());
    }
    has_changed(false);
    return {};
}

result<void> memory_node::set_security(std::span<const std::byte> descriptor) noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (const auto may = tree_.may_change(); not may) return may;
    file_->security.assign(descriptor.begin(), descriptor.end());
    has_changed(false);
    return {};
}

result<std::unique_ptr<directory_listing>> memory_node::list() noexcept {
    const std::scoped_lock guard(tree_.mutex);
    if (kind() != node_kind::directory) return failure({ENOTDIR, "list"});
    return std::make_unique<memory_listing>(tree_, entry_);
}

}  // namespace

node_ptr make_memory_node(memory_tree& tree, memory_entry_ptr entry) {
    return std::make_unique<memory_node>(tree, std::move(entry), nullptr);
}

memory_file* memory_directory_of(node& which) noexcept {
    auto* const own = dynamic_cast<memory_node*>(&which);
    return own != nullptr and own->kind() == node_kind::directory ? &own->file() : nullptr;
}

}  // namespace sluice::vfs

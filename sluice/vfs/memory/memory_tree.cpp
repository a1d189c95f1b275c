#include "sluice/vfs/memory/memory_tree.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr unsigned links_followed_max = 40;  // like Linux

// A path walk that follows links.
class walk {
public:
    walk(const memory_entry_ptr& root, std::string_view path, follow_links last)
        : root_(root), here_(root), rest_(path), follows_last_(last == follow_links::yes) {}

    result<memory_entry_ptr> run() {
        while (not rest_.empty()) {
            const auto slash = rest_.find('/');
            const std::string name = rest_.substr(0, slash);
            rest_.erase(0, slash == rest_.npos ? rest_.size() : slash + 1);
            if (const auto stepped = step(name); not stepped) return failure(stepped.error());
        }
        return here_;
    }

private:
    result<void> step(const std::string& name) {
        memory_file& directory = *here_->file;
        if (directory.status.kind != node_kind::directory) return failure({ENOTDIR, "find"});
        if (name.empty() or name == ".") return {};
        if (name == "..") return step_up(directory);
        const auto found = directory.children.find(fold(name));
        if (found == directory.children.end()) return failure(error::with_path(absence(), "find", name));
        const bool follows = not rest_.empty() or follows_last_;
        if (found->second->file->status.kind != node_kind::symlink or not follows) {
            here_ = found->second;
            return {};
        }
        if (++links_ > links_followed_max) return failure(error::with_path(ELOOP, "find", name));
        const std::string& target = found->second->file->link_target;
        if (target.starts_with('/')) return failure(error::with_path(EXDEV, "find", name));
        is_after_last_ = is_after_last_ or rest_.empty();
        rest_ = rest_.empty() ? target : target + '/' + rest_;
        return {};
    }

    // The error for a missing name, which is the target of the last component, that component, or
    // before it.
    [[nodiscard]] int absence() const noexcept {
        if (is_after_last_) return ENOLINK;
        return rest_.empty() ? ENOENT : ENOTDIR;
    }

    result<void> step_up(const memory_file& directory) {
        if (directory.self == nullptr) return failure({EXDEV, "find"});
        memory_file* const above = directory.self->parent;
        here_ = above->self == nullptr ? root_
                                       : above->self->parent->children.find(fold(above->self->name))->second;
        return {};
    }

    const memory_entry_ptr& root_;
    memory_entry_ptr here_;
    std::string rest_;
    bool follows_last_;
    // The last component of the path is a link, which has been followed.
    bool is_after_last_ = false;
    unsigned links_ = 0;
};

}  // namespace

memory_tree::memory_tree(volume& owned_by, io::io_multiplexer& with, const clock_source& at,
                         const memory_volume_options& chosen)
    : owner(owned_by),
      loops{&with},
      clock(at),
      options(chosen),
      random(std::in_place, chosen.faults.seed),
      room{.pages_left = chosen.capacity_bytes / memory_content::page_bytes},
      feed(with, mutex),
      root(std::make_shared<memory_entry>()) {
    root->file = make_file(node_kind::directory);
}

result<void> memory_tree::may_change() const noexcept {
    if (options.read_only) return failure({EROFS, "change volume"});
    if (is_stopped()) return failure({EIO, "change volume"});
    return {};
}

result<memory_entry_ptr> memory_tree::find(std::string_view path, follow_links links) {
    if (const auto valid = check_path(path); not valid) return failure(valid.error());
    return walk(root, path, links).run();
}

result<memory_place> memory_tree::place(std::string_view path) {
    if (path.empty()) return failure({EEXIST, "name"});
    if (const auto valid = check_path(path); not valid) return failure(valid.error());
    const path_parts parts = split_path(path);
    const auto parent = walk(root, parts.parent, follow_links::yes).run();
    if (not parent) {
        const bool is_missing =
            parent.error() == std::errc::no_such_file_or_directory or parent.error() == std::errc::no_link;
        return failure(is_missing ? error::with_path(ENOTDIR, "find", path) : parent.error());
    }
    memory_file& directory = *(*parent)->file;
    if (directory.status.kind != node_kind::directory)
        return failure(error::with_path(ENOTDIR, "find", path));
    memory_place there{.directory = &directory, .name = parts.name};
    if (const auto found = directory.children.find(fold(parts.name)); found != directory.children.end())
        there.taken = found->second;
    return there;
}

std::shared_ptr<memory_file> memory_tree::make_file(node_kind kind) {
    auto made = std::make_shared<memory_file>(room);
    made->status.kind = kind;
    made->status.id = next_id_++;
    made->status.volume = options.serial;
    made->status.links = 0;
    made->status.permission_bits = kind == node_kind::directory ? 0755 : 0644;
    made->status.born = made->status.accessed = made->status.modified = made->status.changed = now();
    return made;
}

memory_entry_ptr memory_tree::add(memory_file& directory, std::string_view name,
                                  std::shared_ptr<memory_file> file) {
    auto entry = std::make_shared<memory_entry>(
        memory_entry{.parent = &directory, .name = std::string(name), .file = std::move(file)});
    ++entry->file->status.links;
    if (entry->file->status.kind == node_kind::directory) entry->file->self = entry.get();
    const bool is_new = directory.children.emplace(fold(name), entry).second;
    ENSURE(is_new, "name already exists in the directory");
    touch(directory, true);
    record(change_kind::added, *entry);
    return entry;
}

void memory_tree::remove(memory_entry& entry) {
    ENSURE(entry.parent != nullptr);
    record(change_kind::removed, entry);
    if (entry.file->status.kind == node_kind::directory) {
        feed.record_end(*entry.file);
        entry.file->self = nullptr;
    }
    entry.last_path = path_of(entry);
    --entry.file->status.links;
    touch(*entry.file, false);
    memory_file& directory = *entry.parent;
    entry.parent = nullptr;
    touch(directory, true);
    directory.children.erase(fold(entry.name));  // may have been the last reference
}

void memory_tree::move(const memory_entry_ptr& entry, memory_file& directory, std::string_view name) {
    const auto seen_before = feed.names_of(*entry);
    memory_file& from = *entry->parent;
    from.children.erase(fold(entry->name));
    entry->parent = &directory;
    entry->name = name;
    const bool is_new = directory.children.emplace(fold(name), entry).second;
    ENSURE(is_new, "name already exists in the directory");
    touch(from, true);
    touch(directory, true);
    touch(*entry->file, false);
    feed.record_move(seen_before, *entry);
}

void memory_tree::record(change_kind what, const memory_entry& entry) {
    if (entry.parent != nullptr) feed.record(what, entry);
}

void memory_tree::touch(memory_file& file, bool is_modified) noexcept {
    file.status.changed = now();
    if (is_modified) file.status.accessed = file.status.modified = file.status.changed;
}

bool memory_tree::draws(std::uint32_t chance) noexcept {
    return chance != 0 and random->below(1000) < chance;
}

bool memory_tree::is_stopped() const noexcept {
    return options.faults.is_stopped != nullptr and options.faults.is_stopped();
}

}  // namespace sluice::vfs

#include "sluice/vfs/host/recycle_bin.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/lost_name.hpp"
#include "sluice/vfs/host/recycle_directory.hpp"
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {

// A file that is to get a name in the bin: in the directory in which its present name was found.
struct recycle_bin::source {
    const io::handle& file;
    io::file_status status;
    io::path_handle directory;
    std::string parent;
    std::string name;
};

namespace {

bool has_code(const error& why, int code) noexcept {
    return why.code() == code;
}

// Whether the account of this call may remove a name in the directory, as unlink(2) checks it.
result<void> may_remove_from(const io::handle& directory, const io::file_status& file) {
    // The function of the C library may check another identity.
    if (::syscall(SYS_faccessat2, directory.descriptor(), "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0)
        return failure(error::last("remove from", directory.descriptor()));
    const auto status = io::status_of(directory, io::stat_fields::permissions | io::stat_fields::owner);
    if (not status) return failure(status.error());
    if ((status->permission_bits & unsigned{S_ISVTX}) == 0) return {};
    const auto user = static_cast<std::uint32_t>(::setfsuid(static_cast<uid_t>(-1)));
    if (user == file.user_id or user == status->user_id) return {};
    return failure({EPERM, "remove from a directory with the sticky bit", directory.descriptor()});
}

std::uint64_t bytes_in_bin(const io::file_status& file) noexcept {
    return std::min<std::uint64_t>(file.size_bytes, file.allocated_bytes);
}

bool has_no_links(const error& why) noexcept {
    return has_code(why, EPERM) or has_code(why, EOPNOTSUPP) or has_code(why, ENOSYS) or
           has_code(why, EMLINK);
}

error cannot_move(const std::string& name) noexcept {
    return error::with_path(errno, "move to the recycle bin", name);
}

}  // namespace

bool recycle_bin::contains(std::string_view host_path) const {
    ENSURE(tree_.options.recycle.has_value(), "a bin has rules");
    return host_path.substr(0, host_path.find('/')) == tree_.options.recycle->directory;
}

bool recycle_bin::has_directory(const io::handle& directory) const {
    const auto where = tree_.present_path(directory);
    return where and contains(*where);
}

// A file that another one has replaced has only its name in the bin, which the kernel does not know
// by its descriptor.
bool recycle_bin::has_taken(host_tree& tree, const io::handle& file, std::string_view known,
                            const std::optional<std::string>& present) const {
    if (contains(known) or (present and not contains(*present))) return false;
    return has_lost_name(tree, file, known);
}

recycle_owners recycle_bin::of_server() const noexcept {
    const auto server = static_cast<std::uint32_t>(::geteuid());
    return {.wanted = server, .other = server, .has_modes = tree_.has_modes};
}

result<io::path_handle> recycle_bin::open() const {
    const std::string& name = tree_.options.recycle->directory;
    auto opened = open_recycle_directory(tree_.root(), name, of_server());
    if (opened) {
        if (const auto usable = examine_bin(*opened); not usable) return failure(usable.error());
    }
    return opened;
}

// Each time, because a directory that another program puts in the place of the bin may have its
// inode number. Old files are removed from what passes.
result<void> recycle_bin::examine_bin(const io::path_handle& opened) const {
    const auto status = io::status_of(opened, io::stat_fields::inode);
    if (not status) return failure(status.error());
    std::atomic<std::uint64_t>& known = tree_.bin_state.inode;
    if (not tree_.keeps_attributes and known.load(std::memory_order_relaxed) == status->inode) return {};
    const account_identity::pause as_process;
    const auto usable = becomes_bin(opened, tree_.keeps_attributes);
    if (not usable) return failure(usable.error());
    if (not*usable)
        return failure(error::with_path(EEXIST,
                                        "use a directory with other files as the recycle bin (set "
                                        "'directory' of 'recycle' to a new name)",
                                        tree_.options.recycle->directory));
    known.store(status->inode, std::memory_order_relaxed);
    return {};
}

result<io::path_handle> recycle_bin::open_or_create() const {
    auto bin = open();
    if (bin or not has_code(bin.error(), ENOENT)) return bin;
    const std::string& name = tree_.options.recycle->directory;
    const auto made = make_recycle_bin(tree_.root(), name, of_server());
    if (not made and not has_code(made.error(), EEXIST)) return failure(made.error());
    return open();
}

void recycle_bin::prepare() const {
    const auto bin = open_or_create();
    const std::string& name = tree_.options.recycle->directory;
    if (not bin) tree_.bin_state.problem.set(name + ": " + bin.error().reason());
}

error recycle_bin::noted(const error& why, std::string_view where) const {
    if (not has_code(why, EAGAIN) and not has_code(why, EBUSY))
        tree_.bin_state.problem.set(std::string(where) + ": " + why.reason());
    // They would be about the path of the client.
    const bool is_of_bin = has_code(why, EEXIST) or has_code(why, ENOTDIR) or has_code(why, ELOOP);
    if (is_of_bin) return {EACCES, "use the recycle bin"};
    return why;
}

// Returns the rights of the directory at a host's path, which the one in the bin gets.
result<recycle_rights> recycle_bin::rights_of(std::string_view path) const {
    if (not tree_.keeps_attributes) return std::nullopt;
    const auto opened = tree_.open_exactly(path, follow_links::no);
    if (not opened) return failure(opened.error());
    auto rights = load_security(*opened);
    if (not rights) return failure(rights.error());
    return recycle_rights(*std::move(rights));
}

// With the rights of the user. The name is found in the very directory that the user may remove it
// from, so that a link in the place of a directory cannot lead the server to another one.
result<std::optional<recycle_bin::source>> recycle_bin::examine(const io::handle& file,
                                                                std::string_view where) const {
    const recycle_rules& rules = *tree_.options.recycle;
    if (contains(where)) {
        // Files that are in a directory that is not a bin, but has its name, cannot be restored.
        const account_identity::pause as_process;
        if (const auto bin = open(); not bin) return failure(noted(bin.error(), where));
        return std::nullopt;
    }
    if (where.empty() or rules.excluded.match_component(where)) return std::nullopt;
    const auto status = io::status_of(file, node_fields);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular or status->links == 0) return std::nullopt;
    if (rules.bytes_max != 0 and bytes_in_bin(*status) > rules.bytes_max) return std::nullopt;
    if (status->device != tree_.root_device)
        return failure(
            noted(error::with_path(EXDEV, "move to the recycle bin of another mount", where), where));
    const path_parts parts = split_path(where);
    const std::string parent(parts.parent.empty() ? std::string_view(".") : parts.parent);
    const auto opened = io::open_at(tree_.root(), io::terminated_path(parent),
                                    {.flags = O_PATH | O_DIRECTORY, .operation = "recycle"});
    if (not opened) {
        const bool has_moved = has_code(opened.error(), ENOENT) or has_code(opened.error(), ENOTDIR);
        return failure(has_moved ? error(EAGAIN, "recycle") : opened.error());
    }
    source found{.file = file,
                 .status = *status,
                 .directory = io::path_handle({.descriptor = *opened, .kind = io::handle_kind::path}),
                 .parent = std::string(parts.parent),
                 .name = std::string(parts.name)};
    const auto named = io::status_at(found.directory, found.name, io::follow::no, io::stat_fields::inode);
    if (not named and not has_code(named.error(), ENOENT)) return failure(named.error());
    if (not named or not named->is_same_inode(*status)) return failure({EAGAIN, "recycle"});
    if (account_identity::is_in_use()) {
        if (const auto may = may_remove_from(found.directory, *status); not may) return failure(may.error());
    }
    return found;
}

// Opens the directory for a file, with the tree of those above it. On a full disk, and for deep
// trees, it is the deepest one that exists.
result<recycle_bin::place> recycle_bin::open_place(const source& from) const {
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const std::uint32_t user = tree_.has_modes ? from.status.user_id : server;
    const auto bin = open_or_create();
    if (not bin) return failure(bin.error());
    const auto of_root = rights_of("");
    if (not of_root) return failure(of_root.error());
    auto directory =
        make_recycle_directory(*bin, *bin, std::to_string(user),
                               {.wanted = user, .other = server, .has_modes = tree_.has_modes}, *of_root);
    if (not directory) return failure(directory.error());
    const auto owner = recycle_owner_of(*directory);
    if (not owner) return failure(owner.error());
    const recycle_owners same{.wanted = *owner, .other = *owner, .has_modes = tree_.has_modes};
    std::string_view rest = from.parent;
    for (unsigned depth = 0; not rest.empty() and depth != limits::recycled_depth_max; ++depth) {
        const std::string_view next_name = rest.substr(0, rest.find('/'));
        const std::size_t end = from.parent.size() - rest.size() + next_name.size();
        const auto rights = rights_of(std::string_view(from.parent).substr(0, end));
        auto next = rights ? make_recycle_directory(*bin, *directory, next_name, same, *rights)
                           : result<io::path_handle>(failure(rights.error()));
        if (not next) break;
        rest.remove_prefix(std::min(rest.size(), next_name.size() + 1));
        directory = std::move(next);
    }
    return place{.directory = *std::move(directory), .is_complete = rest.empty()};
}

// The large streams of the replaced file go with it.
result<void> recycle_bin::replace(const io::path_handle& to, const std::string& name,
                                  const io::path_handle& base, const char* replacing) const {
    const auto descriptor =
        io::open_at(to, io::terminated_path(name), {.flags = O_PATH | O_NOFOLLOW, .operation = "replace"});
    if (not descriptor) return failure(descriptor.error());
    const io::handle replaced({.descriptor = *descriptor, .kind = io::handle_kind::path});
    const auto old = io::status_of(replaced, io::stat_fields::inode);
    const auto fresh = io::status_at(base, replacing, io::follow::no, io::stat_fields::inode);
    outlived_streams streams(tree_, replaced);
    if (::renameat(base.descriptor(), replacing, to.descriptor(), name.c_str()) != 0)
        return failure(cannot_move(name));
    // Between two names of one file, rename(2) does nothing.
    if (old and fresh and old->is_same_inode(*fresh)) (void)::unlinkat(base.descriptor(), replacing, 0);
    streams.retire_if_unused();
    return {};
}

result<void> recycle_bin::move(const source& from, const io::path_handle& to, const std::string& name,
                               bool replaces) const {
    if (replaces) return replace(to, name, from.directory, from.name.c_str());
    if (::renameat2(from.directory.descriptor(), from.name.c_str(), to.descriptor(), name.c_str(),
                    RENAME_NOREPLACE) == 0)
        return {};
    if (errno != EINVAL and errno != ENOSYS) return failure(cannot_move(name));
    // The file system does not know the flag.
    if (const auto linked = io::link(from.file, to, name); not linked) return linked;
    if (::unlinkat(from.directory.descriptor(), from.name.c_str(), 0) == 0) return {};
    const error why = cannot_move(name);
    (void)::unlinkat(to.descriptor(), name.c_str(), 0);
    return failure(why);
}

result<void> recycle_bin::link(const source& from, const io::path_handle& to, const std::string& name,
                               bool replaces) const {
    if (not replaces) return io::link(from.file, to, name);
    const io::temporary_name fresh;
    if (const auto linked = io::link(from.file, to, fresh.c_str()); not linked) return linked;
    auto done = replace(to, name, to, fresh.c_str());
    if (not done) (void)::unlinkat(to.descriptor(), fresh.c_str(), 0);
    return done;
}

// Returns the name that `give` has given.
template <class Give>
result<std::string> recycle_bin::give_name(const source& from, const place& in, Give give) const {
    const io::path_handle& to = in.directory;
    // In the directory of another path, a file of this name is another file.
    const bool may_replace = in.is_complete and not tree_.options.recycle->keeps_versions;
    for (std::uint64_t version = 1; version <= limits::recycled_versions_tried_max; ++version) {
        std::string chosen = name_of_version(from.name, version);
        auto given = give(to, chosen, false);
        const bool is_taken = not given and has_code(given.error(), EEXIST);
        if (is_taken and may_replace) given = give(to, chosen, true);
        if (given) return chosen;
        // By a directory, perhaps.
        const bool is_directory = has_code(given.error(), EISDIR) or has_code(given.error(), ENOTEMPTY);
        if (not has_code(given.error(), EEXIST) and not is_directory) return failure(given.error());
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto unique = static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
    std::string chosen = name_of_version(from.name, unique);
    const auto given = give(to, chosen, false);
    if (not given) return failure(given.error());
    return chosen;
}

template <class Give>
result<recycle_bin::kept_name> recycle_bin::give_name_somewhere(const source& from, Give give) const {
    for (unsigned attempt = 1;; ++attempt) {
        auto to = open_place(from);
        if (not to) return failure(to.error());
        auto name = give_name(from, *to, give);
        if (name) return kept_name{.directory = std::move(to->directory), .name = *std::move(name)};
        if (not has_code(name.error(), ENOENT)) return failure(name.error());
        // A directory that was empty may have been removed in the meantime, or the file was.
        const auto named = io::status_at(from.directory, from.name, io::follow::no, io::stat_fields::inode);
        if (not named or not named->is_same_inode(from.status)) return failure({EAGAIN, "recycle"});
        if (attempt == limits::recycle_attempts_max) return failure({EBUSY, "recycle"});
    }
}

// The age of a file in the bin is that of its change time.
void recycle_bin::check_age(const source& from) const {
    if (not tree_.has_ages_in_bin()) return;
    const auto after = io::status_of(from.file, io::stat_fields::changed);
    constexpr auto coarsest = std::chrono::seconds(10);
    const bool is_stale = after and after->changed == from.status.changed and
                          std::chrono::system_clock::now() - after->changed > coarsest;
    if (is_stale) tree_.bin_state.lacks_ages.store(true, std::memory_order_relaxed);
}

result<bool> recycle_bin::take(const io::handle& file, std::string_view where) const {
    const auto from = examine(file, where);
    if (not from) return failure(from.error());
    if (not*from) return false;
    // The rename needs no more rights of the user: the bin is the server's.
    const account_identity::pause as_process;
    const auto moved =
        give_name_somewhere(**from, [&](const io::path_handle& to, const std::string& name, bool replaces) {
            return move(**from, to, name, replaces);
        });
    if (not moved) return failure(noted(moved.error(), where));
    check_age(**from);
    return true;
}

result<std::optional<recycle_bin::kept_name>> recycle_bin::keep(const io::handle& file,
                                                                std::string_view where) const {
    const auto from = examine(file, where);
    if (not from) return failure(from.error());
    if (not*from) return std::nullopt;
    {
        const account_identity::pause as_process;
        auto kept =
            give_name_somewhere(**from, [&](const io::path_handle& to, const std::string& name,
                                            bool replaces) { return link(**from, to, name, replaces); });
        if (kept) return *std::move(kept);
        if (not has_no_links(kept.error())) return failure(noted(kept.error(), where));
    }
    const auto moved = take(file, where);
    if (not moved) return failure(moved.error());
    return kept_name{};
}

void recycle_bin::forget(const io::handle& file, const kept_name& kept) const noexcept {
    if (kept.name.empty()) return;
    const account_identity::pause as_process;
    const auto itself = io::status_of(file, io::stat_fields::inode);
    const auto named = io::status_at(kept.directory, kept.name, io::follow::no, io::stat_fields::inode);
    if (itself and named and named->is_same_inode(*itself))
        (void)::unlinkat(kept.directory.descriptor(), kept.name.c_str(), 0);
}

std::string recycle_bin::name_of_version(std::string_view name, std::uint64_t version) {
    if (version == 1) return std::string(name);
    const std::size_t dot = name.rfind('.');
    const bool has_extension = dot != name.npos and dot != 0 and name.size() - dot <= 16;
    const std::string_view extension = has_extension ? name.substr(dot) : std::string_view();
    std::string_view stem = name.substr(0, name.size() - extension.size());
    const std::string number = " (" + std::to_string(version) + ")";
    const std::size_t room = io::limits::name_bytes_max - number.size() - extension.size();
    if (stem.size() > room) {
        stem = stem.substr(0, room + 1);
        // Not within a character of UTF-8.
        while (stem.size() > 1 and (static_cast<unsigned char>(stem.back()) & 0xc0U) == 0x80U)
            stem.remove_suffix(1);
        stem.remove_suffix(1);
    }
    return std::string(stem) + number + std::string(extension);
}

}  // namespace sluice::vfs

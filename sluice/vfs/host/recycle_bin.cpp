#include "sluice/vfs/host/recycle_bin.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/vfs/account_identity.hpp"
#include "sluice/vfs/host/host_tree.hpp"
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
    if (::faccessat(directory.descriptor(), "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0)
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
    return equal_ignoring_case(host_path.substr(0, host_path.find('/')), tree_.options.recycle->directory);
}

bool recycle_bin::has_directory(const io::handle& directory) const {
    const auto where = tree_.present_path(directory);
    return where and contains(*where);
}

// A file that another one has replaced has only its name in the bin, which the kernel does not know
// by its descriptor.
bool recycle_bin::has_taken(const io::handle& file, std::string_view known,
                            const std::optional<std::string>& present) const noexcept {
    if (contains(known) or (present and not contains(*present))) return false;
    const account_identity::pause as_process;
    const auto itself = io::status_of(file, io::stat_fields::inode);
    const auto named = io::status_at(tree_.root(), known, io::follow::yes, io::stat_fields::inode);
    if (not itself) return false;
    if (named) return not named->is_same_inode(*itself);
    return has_code(named.error(), ENOENT) or has_code(named.error(), ENOTDIR) or
           has_code(named.error(), ELOOP);
}

result<io::path_handle> recycle_bin::open() const {
    const auto server = static_cast<std::uint32_t>(::geteuid());
    return open_recycle_directory(tree_.root(), tree_.options.recycle->directory,
                                  {.wanted = server, .other = server});
}

error recycle_bin::noted(const error& why, std::string_view where) const {
    if (not has_code(why, ENOENT) and not has_code(why, EAGAIN))
        tree_.recycle_trouble.set(std::string(where) + ": " + why.reason());
    return why;
}

// With the rights of the user. The name is found in the very directory that the user may remove it
// from, so that a link in the place of a directory cannot lead the server to another one.
result<std::optional<recycle_bin::source>> recycle_bin::examine(const io::handle& file,
                                                                std::string_view where) const {
    const recycle_rules& rules = *tree_.options.recycle;
    if (where.empty() or contains(where) or rules.excluded.match_component(where)) return std::nullopt;
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
result<io::path_handle> recycle_bin::open_place(const source& from) const {
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const std::uint32_t user = from.status.user_id;
    const std::string& name = tree_.options.recycle->directory;
    auto bin = open();
    if (not bin and has_code(bin.error(), ENOENT)) {
        // Readable by others, so that each owner reaches the own directory.
        constexpr unsigned bin_bits = 0755;
        if (::mkdirat(tree_.root().descriptor(), name.c_str(), bin_bits) != 0 and errno != EEXIST)
            return failure(error::with_path(errno, "create the recycle bin", name));
        bin = open();
    }
    if (not bin) return failure(bin.error());
    auto directory =
        make_recycle_directory(*bin, *bin, std::to_string(user), {.wanted = user, .other = server});
    if (not directory) return failure(directory.error());
    const auto owner = recycle_owner_of(*directory);
    if (not owner) return failure(owner.error());
    std::string_view rest = from.parent;
    for (unsigned depth = 0; not rest.empty() and depth != limits::recycled_depth_max; ++depth) {
        const std::string_view next_name = rest.substr(0, rest.find('/'));
        rest.remove_prefix(std::min(rest.size(), next_name.size() + 1));
        auto next = make_recycle_directory(*bin, *directory, next_name, {.wanted = *owner, .other = *owner});
        if (not next) break;
        directory = std::move(next);
    }
    return directory;
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
result<std::string> recycle_bin::give_name(const source& from, const io::path_handle& to, Give give) const {
    for (std::uint64_t version = 1; version <= limits::recycled_versions_tried_max; ++version) {
        std::string chosen = name_of_version(from.name, version);
        auto given = give(to, chosen, false);
        const bool is_taken = not given and has_code(given.error(), EEXIST);
        if (is_taken and not tree_.options.recycle->keeps_versions) given = give(to, chosen, true);
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
        if (name) return kept_name{.directory = *std::move(to), .name = *std::move(name)};
        // A directory that was empty may have been removed in the meantime.
        if (not has_code(name.error(), ENOENT) or attempt == limits::lookup_attempts_max)
            return failure(name.error());
    }
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

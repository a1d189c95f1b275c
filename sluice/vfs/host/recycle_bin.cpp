#include "sluice/vfs/host/recycle_bin.hpp"

#include <fcntl.h>
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
#include "sluice/vfs/host/stream/stream_store.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr unsigned bin_bits = 0755;
constexpr unsigned private_bits = 0700;
constexpr unsigned write_bits_of_others = 022;
constexpr auto within = io::confinement::beneath_one_mount_no_symlinks;
constexpr io::stat_fields checked_fields =
    io::stat_fields::type | io::stat_fields::permissions | io::stat_fields::owner;

bool has_code(const error& why, int code) noexcept {
    return why.code() == code;
}

// Opens a directory that only its owner and the server can change.
result<io::path_handle> open_checked(const io::path_handle& base, std::string_view name,
                                     std::uint32_t owner) {
    const auto descriptor = io::open_at(
        io::anchor_directory{.descriptor = base.descriptor(), .limit = within}, io::terminated_path(name),
        {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW, .operation = "open the recycle bin"});
    if (not descriptor) return failure(descriptor.error());
    io::path_handle opened({.descriptor = *descriptor, .kind = io::handle_kind::path}, within);
    const auto status = io::status_of(opened, checked_fields);
    if (not status) return failure(status.error());
    const bool is_own = status->user_id == owner or status->user_id == ::geteuid();
    if (not is_own or (status->permission_bits & write_bits_of_others) != 0)
        return failure(error::with_path(EACCES, "use the recycle bin of another account", name));
    return opened;
}

result<io::path_handle> open_or_make(const io::path_handle& base, std::string_view name, unsigned bits,
                                     std::uint32_t owner) {
    auto found = open_checked(base, name, owner);
    if (found or not has_code(found.error(), ENOENT)) return found;
    const io::terminated_path text(name);
    if (::mkdirat(base.descriptor(), text.c_str(), bits) != 0 and errno != EEXIST)
        return failure(error::with_path(errno, "create in the recycle bin", name));
    found = open_checked(base, name, owner);
    if (not found or owner == ::geteuid()) return found;
    // A server without the privilege keeps the directory: then only it can enter it.
    (void)::fchownat(found->descriptor(), "", owner, static_cast<gid_t>(-1), AT_EMPTY_PATH);
    return found;
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

}  // namespace

bool recycle_bin::contains(std::string_view host_path) const {
    ENSURE(tree_.options.recycle.has_value(), "a bin has rules");
    return equal_ignoring_case(host_path.substr(0, host_path.find('/')), tree_.options.recycle->directory);
}

result<io::path_handle> recycle_bin::open() const {
    return open_checked(tree_.root(), tree_.options.recycle->directory,
                        static_cast<std::uint32_t>(::geteuid()));
}

result<bool> recycle_bin::take(const io::handle& file, std::string_view where) const {
    const recycle_rules& rules = *tree_.options.recycle;
    if (where.empty() or contains(where) or rules.excluded.match_component(where)) return false;
    const auto status = io::status_of(file, node_fields);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular or status->links == 0) return false;
    if (rules.bytes_max != 0 and status->size_bytes > rules.bytes_max) return false;
    if (status->device != tree_.root_device)
        return failure(error::with_path(EXDEV, "move to the recycle bin of another mount", where));
    const path_parts parts = split_path(where);
    if (account_identity::is_in_use()) {
        const auto directory = tree_.open_exactly(parts.parent, follow_links::yes);
        if (not directory) return failure(directory.error());
        if (const auto may = may_remove_from(*directory, *status); not may) return failure(may.error());
    }
    // The rename needs no more rights of the user: the bin is the server's.
    const account_identity::pause as_process;
    for (unsigned attempt = 1;; ++attempt) {
        const auto place = open_place(*status, parts.parent);
        if (not place) return failure(place.error());
        const auto moved = move(file, *place, parts.name);
        if (moved) return true;
        // A directory that was empty may have been removed in the meantime.
        if (not has_code(moved.error(), ENOENT) or attempt == limits::lookup_attempts_max)
            return failure(moved.error());
    }
}

// Opens the directory for a file, with the tree of those above it. On a full disk, and for deep
// trees, it is the deepest one that exists.
result<io::path_handle> recycle_bin::open_place(const io::file_status& file, std::string_view parent) const {
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const auto bin = open_or_make(tree_.root(), tree_.options.recycle->directory, bin_bits, server);
    if (not bin) return failure(bin.error());
    auto place = open_or_make(*bin, std::to_string(file.user_id), private_bits, file.user_id);
    for (unsigned depth = 0; place and not parent.empty() and depth != limits::recycled_depth_max; ++depth) {
        const std::string_view name = parent.substr(0, parent.find('/'));
        parent.remove_prefix(std::min(parent.size(), name.size() + 1));
        auto next = open_or_make(*place, name, private_bits, file.user_id);
        if (not next) break;
        place = std::move(next);
    }
    return place;
}

result<void> recycle_bin::move(const io::handle& file, const io::path_handle& place,
                               std::string_view name) const {
    result<void> moved;
    for (std::uint64_t version = 1; version <= limits::recycled_versions_tried_max; ++version) {
        const std::string chosen = name_of_version(name, version);
        moved = io::relink(file, place, chosen, io::replace::no);
        if (moved or not has_code(moved.error(), EEXIST)) return moved;
        if (not tree_.options.recycle->keeps_versions) return replace(file, place, chosen);
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto unique = static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
    return io::relink(file, place, name_of_version(name, unique), io::replace::no);
}

// The large streams of the replaced file go with it.
result<void> recycle_bin::replace(const io::handle& file, const io::path_handle& place,
                                  const std::string& name) const {
    const auto descriptor =
        io::open_at(place, io::terminated_path(name), {.flags = O_PATH | O_NOFOLLOW, .operation = "replace"});
    if (not descriptor) return failure(descriptor.error());
    const io::handle replaced({.descriptor = *descriptor, .kind = io::handle_kind::path});
    outlived_streams streams(tree_, replaced);
    const auto done = io::relink(file, place, name, io::replace::yes);
    if (done) streams.retire_if_unused();
    return done;
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

#include "sluice/vfs/host/recycle_directory.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/path_resolution.hpp"
#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/host/host_attributes.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {
namespace {

constexpr unsigned private_bits = 0700;
constexpr unsigned bin_bits = 0755;
constexpr unsigned all_mode_bits = 07777;
constexpr unsigned write_bits_of_others = 022;
constexpr io::stat_fields checked_fields =
    io::stat_fields::type | io::stat_fields::permissions | io::stat_fields::owner;

error cannot_create(std::string_view name) noexcept {
    return error::with_path(errno, "create in the recycle bin", name);
}

result<void> set_mode(const io::path_handle& opened, unsigned bits) noexcept {
    // fchmod(2) refuses a descriptor that was opened with O_PATH.
    if (::chmod(io::descriptor_path(opened.descriptor()).c_str(), static_cast<mode_t>(bits)) == 0) return {};
    return failure(error::last("set the mode", opened.descriptor()));
}

bool give_away(const io::path_handle& made, std::uint32_t owner) noexcept {
    return ::fchownat(made.descriptor(), "", owner, static_cast<gid_t>(-1), AT_EMPTY_PATH) == 0;
}

// Where the file system does not know the flag, an empty directory may be replaced.
bool rename_to_free_name(const io::path_handle& from, const char* name, const io::path_handle& to,
                         const char* new_name) noexcept {
    if (::renameat2(from.descriptor(), name, to.descriptor(), new_name, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL and errno != ENOSYS) return false;
    return ::renameat(from.descriptor(), name, to.descriptor(), new_name) == 0;
}

result<void> set_rights(const io::path_handle& of, const recycle_rights& like) {
    if (not like) return {};
    const auto present = load_security(of);
    if (present and *present == *like) return {};
    return store_security(of, *like);
}

// The owner of the base can exchange its names. So nothing uses a name in it but the rename, which
// replaces at most an empty directory.
result<void> make_directory(const io::path_handle& bin, const io::path_handle& base, std::string_view name,
                            recycle_owners owners, const recycle_rights& like) {
    const io::temporary_name fresh;
    if (::mkdirat(bin.descriptor(), fresh.c_str(), private_bits) != 0) return failure(cannot_create(name));
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const auto made = open_recycle_directory(
        bin, fresh.c_str(), {.wanted = server, .other = server, .has_modes = owners.has_modes});
    const bool may_stay_servers = owners.wanted == server or base.descriptor() == bin.descriptor();
    result<void> done;
    if (not made) done = failure(made.error());
    // Not what the umask or a default ACL has left.
    if (done and owners.has_modes) done = set_mode(*made, private_bits);
    if (done) done = set_rights(*made, like);
    if (done and owners.wanted != server and not give_away(*made, owners.wanted) and not may_stay_servers)
        done = failure(cannot_create(name));
    const io::terminated_path text(name);
    if (done and not rename_to_free_name(bin, fresh.c_str(), base, text.c_str()))
        done = failure(cannot_create(name));
    if (done) return {};
    (void)::unlinkat(bin.descriptor(), fresh.c_str(), AT_REMOVEDIR);
    // Another call has created it meanwhile, or the name is that of a file.
    const int code = done.error().code();
    if (code == EEXIST or code == ENOTEMPTY or code == ENOTDIR) return {};
    return done;
}

bool is_of_server(const io::directory_entry& entry) noexcept {
    if (entry.type != io::file_type::directory) return false;
    return entry.name == removed_files_name or owner_of_name(entry.name) or
           entry.name.starts_with(".sluice-");  // a temporary name
}

// The entries of a directory: none, only those of a bin, or others.
enum class bin_content : std::uint8_t { none, of_bin, others };

result<io::directory_handle> open_for_listing(const io::path_handle& directory) {
    const auto opened =
        io::open_at(io::anchor_directory{.descriptor = directory.descriptor(), .limit = recycle_confinement},
                    io::terminated_path("."),
                    {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW, .operation = "list the recycle bin"});
    if (not opened) return failure(opened.error());
    return io::directory_handle({.descriptor = *opened, .kind = io::handle_kind::directory, .readable = true},
                                recycle_confinement);
}

result<bin_content> content_of(const io::path_handle& directory) {
    auto listed = open_for_listing(directory);
    if (not listed) return failure(listed.error());
    std::vector<io::directory_entry> entries(limits::listed_names_per_batch);
    std::vector<char> storage(limits::listing_storage_bytes);
    bin_content found = bin_content::none;
    for (std::uint64_t position = 0;;) {
        const auto batch = listed->enumerate(
            {.entries = entries, .storage = storage, .position = position, .wanted = io::stat_fields::type});
        if (not batch) return failure(batch.error());
        if (batch->entries.empty()) return found;
        for (const io::directory_entry& each : batch->entries)
            if (not is_of_server(each)) return bin_content::others;
        found = bin_content::of_bin;
        position = batch->next;
    }
}

}  // namespace

result<io::path_handle> open_recycle_directory(const io::path_handle& base, std::string_view name,
                                               recycle_owners owners) {
    const auto descriptor =
        io::open_at(io::anchor_directory{.descriptor = base.descriptor(), .limit = recycle_confinement},
                    io::terminated_path(name),
                    {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW, .operation = "open the recycle bin"});
    if (not descriptor) return failure(descriptor.error());
    io::path_handle opened({.descriptor = *descriptor, .kind = io::handle_kind::path}, recycle_confinement);
    const auto status = io::status_of(opened, checked_fields);
    if (not status) return failure(status.error());
    if (not owners.has_modes) return opened;
    const bool is_own = status->user_id == owners.wanted or status->user_id == owners.other;
    if (not is_own) return failure(error::with_path(EACCES, "use the recycle bin of another account", name));
    if ((status->permission_bits & write_bits_of_others) == 0) return opened;
    const auto done = set_mode(opened, status->permission_bits & all_mode_bits & ~write_bits_of_others);
    const auto after = io::status_of(opened, checked_fields);
    if (not done or not after or (after->permission_bits & write_bits_of_others) != 0)
        return failure(error::with_path(EACCES, "use a recycle bin to which other accounts may write", name));
    return opened;
}

result<std::uint32_t> recycle_owner_of(const io::handle& directory) {
    const auto status = io::status_of(directory, io::stat_fields::owner);
    if (not status) return failure(status.error());
    return status->user_id;
}

result<io::path_handle> make_recycle_directory(const io::path_handle& bin, const io::path_handle& base,
                                               std::string_view name, recycle_owners owners,
                                               const recycle_rights& like) {
    ENSURE(not name.empty() and name.find('/') == name.npos, "a directory of the bin has one name");
    auto found = open_recycle_directory(base, name, owners);
    if (not found and found.error() == std::errc::no_such_file_or_directory) {
        const auto made = make_directory(bin, base, name, owners, like);
        if (not made) return failure(made.error());
        found = open_recycle_directory(base, name, owners);
    }
    if (not found) return found;
    if (const auto done = set_rights(*found, like); not done) return failure(done.error());
    // The server has created its own directories in the bin, which is certain only there.
    const auto owner = recycle_owner_of(*found);
    const bool is_kept = base.descriptor() == bin.descriptor() and owner and * owner != owners.wanted;
    if (is_kept and owners.has_modes) (void)give_away(*found, owners.wanted);
    return found;
}

// Another program may have put a directory of the server in the place of the new one: its mode does
// not change if it has files.
result<io::path_handle> make_recycle_bin(const io::path_handle& root, std::string_view name,
                                         recycle_owners owners) {
    const io::terminated_path text(name);
    if (::mkdirat(root.descriptor(), text.c_str(), bin_bits) != 0)
        return failure(error::with_path(errno, "create the recycle bin", name));
    auto made = open_recycle_directory(root, name, owners);
    if (not made or not owners.has_modes) return made;
    const auto content = content_of(*made);
    if (not content) return failure(content.error());
    if (*content != bin_content::none)
        return failure(error::with_path(EEXIST, "create the recycle bin", name));
    if (const auto done = set_mode(*made, bin_bits); not done) return failure(done.error());
    return made;
}

result<bool> becomes_bin(const io::path_handle& directory, bool has_attributes) {
    if (has_attributes and io::xattr_bytes(directory, recycle_bin_attribute)) return true;
    const auto content = content_of(directory);
    if (not content) return failure(content.error());
    if (not has_attributes) return *content != bin_content::others;
    if (*content != bin_content::none) return false;
    constexpr std::array<std::byte, 1> mark{std::byte{1}};
    if (const auto done = io::store_xattr(directory, recycle_bin_attribute, mark); not done)
        return failure(done.error());
    return true;
}

std::optional<std::uint32_t> owner_of_name(std::string_view name) noexcept {
    std::uint32_t owner = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), owner);
    const bool has_zeros = name.size() > 1 and name.starts_with('0');
    if (problem != std::errc() or end != name.data() + name.size() or has_zeros) return std::nullopt;
    return owner;
}

}  // namespace sluice::vfs

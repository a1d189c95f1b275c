#include "sluice/vfs/host/recycle_directory.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice/base/ensure.hpp"
#include "sluice/io/path/path_resolution.hpp"

namespace sluice::vfs {
namespace {

constexpr unsigned private_bits = 0700;
constexpr unsigned write_bits_of_others = 022;
constexpr io::stat_fields checked_fields =
    io::stat_fields::type | io::stat_fields::permissions | io::stat_fields::owner;

error cannot_create(std::string_view name) noexcept {
    return error::with_path(errno, "create in the recycle bin", name);
}

result<void> make_for_server(const io::path_handle& base, std::string_view name) {
    const io::terminated_path text(name);
    if (::mkdirat(base.descriptor(), text.c_str(), private_bits) == 0 or errno == EEXIST) return {};
    return failure(cannot_create(name));
}

// The owner of the base can exchange its names. So nothing uses a name in it but the rename, which
// replaces at most an empty directory.
result<void> make_for_owner(const io::path_handle& bin, const io::path_handle& base, std::string_view name,
                            std::uint32_t owner) {
    const io::temporary_name fresh;
    if (::mkdirat(bin.descriptor(), fresh.c_str(), private_bits) != 0) return failure(cannot_create(name));
    const auto server = static_cast<std::uint32_t>(::geteuid());
    const auto made = open_recycle_directory(bin, fresh.c_str(), {.wanted = server, .other = server});
    const bool may_stay_servers = base.descriptor() == bin.descriptor();
    bool is_done = false;
    int code = made ? 0 : made.error().code();
    if (made) {
        const bool is_given =
            ::fchownat(made->descriptor(), "", owner, static_cast<gid_t>(-1), AT_EMPTY_PATH) == 0;
        code = errno;
        const io::terminated_path text(name);
        if (is_given or may_stay_servers) {
            is_done = ::renameat(bin.descriptor(), fresh.c_str(), base.descriptor(), text.c_str()) == 0;
            code = errno;
        }
    }
    if (is_done) return {};
    (void)::unlinkat(bin.descriptor(), fresh.c_str(), AT_REMOVEDIR);
    // Another call has created it meanwhile, or the name is that of a file.
    if (code == EEXIST or code == ENOTEMPTY or code == ENOTDIR) return {};
    return failure(error::with_path(code, "create in the recycle bin", name));
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
    const bool is_own = status->user_id == owners.wanted or status->user_id == owners.other;
    if (not is_own or (status->permission_bits & write_bits_of_others) != 0)
        return failure(error::with_path(EACCES, "use the recycle bin of another account", name));
    return opened;
}

result<std::uint32_t> recycle_owner_of(const io::handle& directory) {
    const auto status = io::status_of(directory, io::stat_fields::owner);
    if (not status) return failure(status.error());
    return status->user_id;
}

result<io::path_handle> make_recycle_directory(const io::path_handle& bin, const io::path_handle& base,
                                               std::string_view name, recycle_owners owners) {
    ENSURE(not name.empty() and name.find('/') == name.npos, "a directory of the bin has one name");
    auto found = open_recycle_directory(base, name, owners);
    if (found or found.error() != std::errc::no_such_file_or_directory) return found;
    const bool is_servers = owners.wanted == static_cast<std::uint32_t>(::geteuid());
    const auto made =
        is_servers ? make_for_server(base, name) : make_for_owner(bin, base, name, owners.wanted);
    if (not made) return failure(made.error());
    return open_recycle_directory(base, name, owners);
}

}  // namespace sluice::vfs

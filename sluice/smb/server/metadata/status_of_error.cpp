#include "sluice/smb/server/metadata/status_of_error.hpp"

#include <cerrno>

#include "sluice/vfs/limits.hpp"

namespace sluice::smb::server {

wire::nt_status status_of(const error& why) noexcept {
    using wire::nt_status;
    switch (why.code()) {
        case ENOENT:
        case ENOLINK:
            return nt_status::object_name_not_found;
        case ENOTDIR:
            return nt_status::object_path_not_found;
        case EISDIR:
            return nt_status::file_is_a_directory;
        case EEXIST:
            return nt_status::object_name_collision;
        case EACCES:
        case EPERM:
            return nt_status::access_denied;
        case EROFS:
            return nt_status::media_write_protected;
        case EXDEV:
            return nt_status::not_same_device;
        case ELOOP:
            return nt_status::object_path_not_found;
        case ENOTEMPTY:
            return nt_status::directory_not_empty;
        case EBUSY:
        case ETXTBSY:
            return nt_status::sharing_violation;
        case ENAMETOOLONG:
            return nt_status::object_name_invalid;
        case EILSEQ:
            return nt_status::object_name_invalid;
        case EINVAL:
            return nt_status::invalid_parameter;
        case ENOSPC:
        case EDQUOT:
            return nt_status::disk_full;
        case EFBIG:
            return nt_status::file_too_large;
        case EMLINK:
            return nt_status::too_many_links;
        case EMFILE:
        case ENFILE:
            return nt_status::too_many_opened_files;
        case ENOMEM:
            return nt_status::insufficient_resources;
        case EOPNOTSUPP:
        case ENOSYS:
            return nt_status::not_supported;
        case EBADF:
            return nt_status::invalid_handle;
        case EIO:
            return nt_status::io_device_error;
        case ESTALE:
            return nt_status::file_closed;
        case vfs::limits::crosses_mount:
            return crosses_mount;
        case ECANCELED:
            return nt_status::cancelled;
        case ETIMEDOUT:
            return nt_status::io_timeout;
        case EAGAIN:
            return nt_status::retry;
        default:
            return nt_status::unsuccessful;
    }
}

std::expected<vfs::metadata, wire::nt_status> asked_status(vfs::node& node) noexcept {
    const result<vfs::metadata> status = node.status();
    if (not status) return std::unexpected(status_of(status.error()));
    return *status;
}

}  // namespace sluice::smb::server

#include "sluice/smb/client/status_text.hpp"

#include <array>
#include <cerrno>
#include <span>

namespace sluice::smb::client {

using wire::nt_status;

namespace {

// Status codes about names, users and rights, with their errno values, texts and remedies.
constexpr auto refusals = std::to_array<status_text>({
    {nt_status::no_such_file, ENOENT, "no such file or directory", ""},
    {nt_status::object_name_not_found, ENOENT, "no such file or directory", ""},
    {nt_status::object_path_not_found, ENOENT, "a directory in the path does not exist", ""},
    {nt_status::object_path_invalid, ENOTDIR, "the path contains a name that is not a directory", ""},
    {nt_status::not_found, ENOENT, "not found", ""},
    {nt_status::object_name_collision, EEXIST, "the name already exists", ""},
    {nt_status::object_name_invalid, EINVAL, "the server does not allow this name",
     "Windows does not allow \\ / : * ? \" < > | in names, or dots and spaces at their end"},
    {nt_status::object_path_syntax_bad, EINVAL, "the server does not allow this path", ""},
    {nt_status::name_too_long, ENAMETOOLONG, "the name is too long for the server", ""},
    {nt_status::access_denied, EACCES, "access denied for this user",
     "log on as another user, or grant this user access to the share or file"},
    {nt_status::network_access_denied, EACCES, "access denied for this user", ""},
    {nt_status::privilege_not_held, EPERM, "the user lacks a privilege", ""},
    {nt_status::cannot_delete, EACCES, "the file or directory cannot be deleted", "it may be read-only"},
    {nt_status::media_write_protected, EROFS, "the share is read-only", ""},
    {nt_status::logon_failure, EACCES, "unknown user name or wrong password",
     "check both; use SLUICE_PASSWORD or --password-file, or type the password"},
    {nt_status::wrong_password, EACCES, "the password is wrong", ""},
    {nt_status::no_such_user, EACCES, "no such user on the server", ""},
    {nt_status::account_disabled, EACCES, "the account is disabled", ""},
    {nt_status::account_locked_out, EACCES, "the account is temporarily locked after wrong passwords",
     "wait, or ask the administrator"},
    {nt_status::account_expired, EACCES, "the account has expired", ""},
    {nt_status::account_restriction, EACCES, "an account restriction prevents this logon",
     "many servers reject network logons without a password"},
    {nt_status::password_expired, EACCES, "the password has expired", "change it first"},
    {nt_status::password_must_change, EACCES, "the password must be changed first", ""},
    {nt_status::logon_type_not_granted, EACCES, "network logons are not allowed for this user", ""},
    {nt_status::no_logon_servers, EHOSTUNREACH, "the server cannot reach its domain controller", ""},
});

// Status codes about shares, files, and the server itself.
constexpr auto other_failures = std::to_array<status_text>({
    {nt_status::bad_network_name, ENOENT, "no such share on the server",
     "list its shares with 'sluice ls //HOST'"},
    {nt_status::bad_network_path, ENOENT, "no such share on the server", ""},
    {nt_status::bad_device_type, EINVAL, "the share does not contain files", ""},
    {nt_status::share_unavailable, EAGAIN, "the share is temporarily unavailable", ""},
    {nt_status::sharing_violation, EBUSY, "the file is open in another program (sharing violation)", ""},
    {nt_status::file_lock_conflict, EBUSY, "another program has locked this part of the file", ""},
    {nt_status::lock_not_granted, EBUSY, "another program has locked this part of the file", ""},
    {nt_status::delete_pending, EBUSY, "the file is being deleted", ""},
    {nt_status::file_is_a_directory, EISDIR, "the path is a directory", ""},
    {nt_status::not_a_directory, ENOTDIR, "the path is not a directory", ""},
    {nt_status::directory_not_empty, ENOTEMPTY, "the directory is not empty", ""},
    {nt_status::stopped_on_symlink, ELOOP, "the path contains a symbolic link, which is not followed",
     "use the path of its target"},
    {nt_status::io_reparse_tag_not_handled, ELOOP, "the server does not support this kind of link", ""},
    {nt_status::path_not_covered, EXDEV, "the share refers to another server (DFS), which is not followed",
     "use the path of its target"},
    {nt_status::disk_full, ENOSPC, "the volume is full", "free space on the server"},
    {nt_status::disk_quota_exceeded, EDQUOT, "the user's quota is exceeded",
     "remove files of this user on the server"},
    {nt_status::quota_exceeded, EDQUOT, "a quota is exceeded", ""},
    {nt_status::file_too_large, EFBIG, "the file is too large for the server's volume", ""},
    {nt_status::end_of_file, ENODATA, "the offset is after the end of the file", ""},
    {nt_status::file_closed, EBADF, "the server has closed the file", ""},
    {nt_status::file_deleted, ESTALE, "the file was deleted", ""},
    {nt_status::too_many_opened_files, EMFILE, "the server's limit of open files is reached", ""},
    {nt_status::insufficient_resources, ENOMEM, "the server is out of memory", "try again later"},
    {nt_status::insuff_server_resources, ENOMEM, "the server is out of memory", "try again later"},
    {nt_status::no_memory, ENOMEM, "the server is out of memory", "try again later"},
    {nt_status::request_not_accepted, EUSERS, "the server's limit of connections is reached",
     "try again later"},
    {nt_status::too_many_sessions, EUSERS, "the server's limit of sessions is reached", "try again later"},
    {nt_status::cancelled, ECANCELED, "cancelled", ""},
    {nt_status::io_timeout, ETIMEDOUT, "the server's device did not answer in time", ""},
    {nt_status::io_device_error, EIO, "the server's device failed", ""},
    {nt_status::data_error, EIO, "the server failed to read its device", ""},
    {nt_status::crc_error, EIO, "the server failed to read its device", ""},
    {nt_status::disk_corrupt_error, EIO, "the server's volume is damaged", "check the volume on the server"},
    {nt_status::file_corrupt_error, EIO, "the file is damaged on the server",
     "check the volume on the server"},
    {nt_status::not_supported, EOPNOTSUPP, "the server does not support this operation", ""},
    {nt_status::short_names_not_enabled_on_volume, EOPNOTSUPP, "the share has no short names", ""},
    {nt_status::not_implemented, EOPNOTSUPP, "the server does not support this operation", ""},
    {nt_status::invalid_device_request, EOPNOTSUPP, "the server does not support this operation", ""},
    {nt_status::invalid_info_class, EOPNOTSUPP, "the server does not support this operation", ""},
    {nt_status::invalid_parameter, EINVAL, "the server rejected the request as invalid", ""},
    {nt_status::not_same_device, EXDEV, "the target is on another volume", ""},
    {nt_status::network_name_deleted, ESHUTDOWN, "the server has removed the share", ""},
    {nt_status::user_session_deleted, ESHUTDOWN, "the server has ended the session", "log on again"},
    {nt_status::network_session_expired, ESHUTDOWN, "the session has expired", "log on again"},
    {nt_status::invalid_signature, EPROTO, "the server rejected the signature", ""},
    {nt_status::downgrade_detected, EPROTO, "the server detected a manipulated negotiation", ""},
    {nt_status::smb_no_preauth_integrity_hash_overlap, EPROTO, "the server does not support SHA-512", ""},
});

constexpr status_text unknown{nt_status::unsuccessful, EIO, "", ""};

}  // namespace

const status_text& text_of(nt_status status) noexcept {
    for (const std::span<const status_text> table :
         {std::span<const status_text>(refusals), std::span<const status_text>(other_failures)})
        for (const status_text& each : table)
            if (each.status == status) return each;
    return unknown;
}

}  // namespace sluice::smb::client

#include "sluice/smb/client/status_text.hpp"

#include <array>
#include <cerrno>
#include <span>

namespace sluice::smb::client {

using wire::nt_status;

namespace {

// What servers say, for people and for callers that want an errno value: of names, users and rights;
constexpr auto refusals = std::to_array<status_text>({
    {nt_status::no_such_file, ENOENT, "no such file or folder", ""},
    {nt_status::object_name_not_found, ENOENT, "no such file or folder", ""},
    {nt_status::object_path_not_found, ENOENT, "a folder on the way does not exist", ""},
    {nt_status::object_path_invalid, ENOTDIR, "something on the way is not a folder", ""},
    {nt_status::not_found, ENOENT, "not found", ""},
    {nt_status::object_name_collision, EEXIST, "it exists already", ""},
    {nt_status::object_name_invalid, EINVAL, "the server does not allow this name",
     "Windows forbids \\ / : * ? \" < > | in names, and dots and spaces at their end"},
    {nt_status::object_path_syntax_bad, EINVAL, "the server does not allow this path", ""},
    {nt_status::name_too_long, ENAMETOOLONG, "the name is too long for the server", ""},
    {nt_status::access_denied, EACCES, "the server does not permit it to this user",
     "log on as another user, or have the share or the file opened to this one"},
    {nt_status::network_access_denied, EACCES, "the server does not permit it to this user", ""},
    {nt_status::privilege_not_held, EPERM, "the user lacks a privilege", ""},
    {nt_status::cannot_delete, EACCES, "it cannot be deleted", "it may be read-only"},
    {nt_status::media_write_protected, EROFS, "the share is read-only", ""},
    {nt_status::logon_failure, EACCES, "the server does not accept the user name or the password",
     "check both; sluice asks for the password unless SLUICE_PASSWORD or --password-file gives it"},
    {nt_status::wrong_password, EACCES, "the password is wrong", ""},
    {nt_status::no_such_user, EACCES, "the server knows no such user", ""},
    {nt_status::account_disabled, EACCES, "the account is disabled", ""},
    {nt_status::account_locked_out, EACCES, "the account is locked for now, after wrong passwords",
     "wait, or ask the administrator"},
    {nt_status::account_expired, EACCES, "the account has expired", ""},
    {nt_status::account_restriction, EACCES, "the account may not log on this way",
     "accounts without a password often may not log on over the network"},
    {nt_status::password_expired, EACCES, "the password has expired", "change it first"},
    {nt_status::password_must_change, EACCES, "the password must be changed first", ""},
    {nt_status::logon_type_not_granted, EACCES, "the user may not log on over the network", ""},
    {nt_status::no_logon_servers, EHOSTUNREACH, "the server cannot reach its domain controller", ""},
});

// and of shares, files, and themselves.
constexpr auto troubles = std::to_array<status_text>({
    {nt_status::bad_network_name, ENOENT, "the server has no such share",
     "list its shares: smbclient -L HOST, or ask who runs it"},
    {nt_status::bad_network_path, ENOENT, "the server has no such share", ""},
    {nt_status::bad_device_type, EINVAL, "the share is not one of files", ""},
    {nt_status::share_unavailable, EAGAIN, "the share is not available now", ""},
    {nt_status::sharing_violation, EBUSY, "somebody else has it open and shares it with nobody", ""},
    {nt_status::file_lock_conflict, EBUSY, "somebody else has locked that part of it", ""},
    {nt_status::lock_not_granted, EBUSY, "somebody else has locked that part of it", ""},
    {nt_status::delete_pending, EBUSY, "it is being deleted", ""},
    {nt_status::file_is_a_directory, EISDIR, "it is a folder", "-r takes folders with all they hold"},
    {nt_status::not_a_directory, ENOTDIR, "it is not a folder", ""},
    {nt_status::directory_not_empty, ENOTEMPTY, "the folder is not empty", "-r takes what it holds, too"},
    {nt_status::stopped_on_symlink, ELOOP, "a symbolic link is on the way, which we do not follow",
     "name the place it leads to"},
    {nt_status::io_reparse_tag_not_handled, ELOOP, "a link of a kind the server does not resolve", ""},
    {nt_status::path_not_covered, EXDEV, "the path is on another server (DFS), which we do not follow", ""},
    {nt_status::disk_full, ENOSPC, "the volume is full", ""},
    {nt_status::disk_quota_exceeded, EDQUOT, "the user's quota is used up", ""},
    {nt_status::quota_exceeded, EDQUOT, "a quota is used up", ""},
    {nt_status::file_too_large, EFBIG, "the file would be too large for the server's volume", ""},
    {nt_status::end_of_file, ENODATA, "there is nothing behind the end of the file", ""},
    {nt_status::file_closed, EBADF, "the server has closed the file", ""},
    {nt_status::file_deleted, ESTALE, "somebody has deleted it meanwhile", ""},
    {nt_status::too_many_opened_files, EMFILE, "the server lets nobody open more files", ""},
    {nt_status::insufficient_resources, ENOMEM, "the server is short of memory", "try again later"},
    {nt_status::insuff_server_resources, ENOMEM, "the server is short of memory", "try again later"},
    {nt_status::no_memory, ENOMEM, "the server is short of memory", "try again later"},
    {nt_status::request_not_accepted, EUSERS, "the server takes no more connections", "try again later"},
    {nt_status::too_many_sessions, EUSERS, "the server takes no more sessions", "try again later"},
    {nt_status::cancelled, ECANCELED, "cancelled", ""},
    {nt_status::io_timeout, ETIMEDOUT, "the server's device did not answer in time", ""},
    {nt_status::io_device_error, EIO, "the server's device failed", ""},
    {nt_status::data_error, EIO, "the server could not read its device", ""},
    {nt_status::crc_error, EIO, "the server could not read its device", ""},
    {nt_status::disk_corrupt_error, EIO, "the server's volume is damaged", "have it checked"},
    {nt_status::file_corrupt_error, EIO, "the file is damaged on the server", "have the volume checked"},
    {nt_status::not_supported, EOPNOTSUPP, "the server does not support it", ""},
    {nt_status::not_implemented, EOPNOTSUPP, "the server does not support it", ""},
    {nt_status::invalid_device_request, EOPNOTSUPP, "the server does not support it", ""},
    {nt_status::invalid_info_class, EOPNOTSUPP, "the server does not support it", ""},
    {nt_status::invalid_parameter, EINVAL, "the server refuses the request", ""},
    {nt_status::not_same_device, EXDEV, "it would be on another volume", ""},
    {nt_status::network_name_deleted, ESHUTDOWN, "the server has taken the share away", ""},
    {nt_status::user_session_deleted, ESHUTDOWN, "the server has ended the session", "log on again"},
    {nt_status::network_session_expired, ESHUTDOWN, "the session has expired", "log on again"},
    {nt_status::invalid_signature, EPROTO, "the server says our signature is wrong", ""},
    {nt_status::downgrade_detected, EPROTO, "the server says somebody tampered with the negotiation", ""},
    {nt_status::smb_no_preauth_integrity_hash_overlap, EPROTO, "the server knows no SHA-512", ""},
});

constexpr status_text unknown{nt_status::unsuccessful, EIO, "", ""};

}  // namespace

const status_text& text_of(nt_status status) noexcept {
    for (const std::span<const status_text> table :
         {std::span<const status_text>(refusals), std::span<const status_text>(troubles)})
        for (const status_text& each : table)
            if (each.status == status) return each;
    return unknown;
}

}  // namespace sluice::smb::client

#pragma once

#include <cstdint>
#include <string_view>

// One list for the enumerators and their names, so that neither can be omitted: (enumerator, name
// without STATUS_, value), in ascending order of values. [MS-ERREF] 2.3.1.
// clang-format off
#define SLUICE_NT_STATUS_LIST(X) \
    X(success, SUCCESS, 0x00000000) \
    X(pending, PENDING, 0x00000103) \
    X(reparse, REPARSE, 0x00000104) \
    X(more_entries, MORE_ENTRIES, 0x00000105) \
    X(not_all_assigned, NOT_ALL_ASSIGNED, 0x00000106) \
    X(some_not_mapped, SOME_NOT_MAPPED, 0x00000107) \
    X(oplock_break_in_progress, OPLOCK_BREAK_IN_PROGRESS, 0x00000108) \
    X(notify_cleanup, NOTIFY_CLEANUP, 0x0000010b) \
    X(notify_enum_dir, NOTIFY_ENUM_DIR, 0x0000010c) \
    X(oplock_handle_closed, OPLOCK_HANDLE_CLOSED, 0x00000216) \
    X(buffer_overflow, BUFFER_OVERFLOW, 0x80000005) \
    X(no_more_files, NO_MORE_FILES, 0x80000006) \
    X(no_more_eas, NO_MORE_EAS, 0x80000012) \
    X(invalid_ea_name, INVALID_EA_NAME, 0x80000013) \
    X(ea_list_inconsistent, EA_LIST_INCONSISTENT, 0x80000014) \
    X(invalid_ea_flag, INVALID_EA_FLAG, 0x80000015) \
    X(no_more_entries, NO_MORE_ENTRIES, 0x8000001a) \
    X(stopped_on_symlink, STOPPED_ON_SYMLINK, 0x8000002d) \
    X(cannot_grant_requested_oplock, CANNOT_GRANT_REQUESTED_OPLOCK, 0x8000002e) \
    X(unsuccessful, UNSUCCESSFUL, 0xc0000001) \
    X(not_implemented, NOT_IMPLEMENTED, 0xc0000002) \
    X(invalid_info_class, INVALID_INFO_CLASS, 0xc0000003) \
    X(info_length_mismatch, INFO_LENGTH_MISMATCH, 0xc0000004) \
    X(invalid_handle, INVALID_HANDLE, 0xc0000008) \
    X(invalid_parameter, INVALID_PARAMETER, 0xc000000d) \
    X(no_such_device, NO_SUCH_DEVICE, 0xc000000e) \
    X(no_such_file, NO_SUCH_FILE, 0xc000000f) \
    X(invalid_device_request, INVALID_DEVICE_REQUEST, 0xc0000010) \
    X(end_of_file, END_OF_FILE, 0xc0000011) \
    X(wrong_volume, WRONG_VOLUME, 0xc0000012) \
    X(no_media_in_device, NO_MEDIA_IN_DEVICE, 0xc0000013) \
    X(more_processing_required, MORE_PROCESSING_REQUIRED, 0xc0000016) \
    X(no_memory, NO_MEMORY, 0xc0000017) \
    X(invalid_lock_sequence, INVALID_LOCK_SEQUENCE, 0xc000001e) \
    X(invalid_view_size, INVALID_VIEW_SIZE, 0xc000001f) \
    X(access_denied, ACCESS_DENIED, 0xc0000022) \
    X(buffer_too_small, BUFFER_TOO_SMALL, 0xc0000023) \
    X(object_type_mismatch, OBJECT_TYPE_MISMATCH, 0xc0000024) \
    X(disk_corrupt_error, DISK_CORRUPT_ERROR, 0xc0000032) \
    X(object_name_invalid, OBJECT_NAME_INVALID, 0xc0000033) \
    X(object_name_not_found, OBJECT_NAME_NOT_FOUND, 0xc0000034) \
    X(object_name_collision, OBJECT_NAME_COLLISION, 0xc0000035) \
    X(object_path_invalid, OBJECT_PATH_INVALID, 0xc0000039) \
    X(object_path_not_found, OBJECT_PATH_NOT_FOUND, 0xc000003a) \
    X(object_path_syntax_bad, OBJECT_PATH_SYNTAX_BAD, 0xc000003b) \
    X(data_error, DATA_ERROR, 0xc000003e) \
    X(crc_error, CRC_ERROR, 0xc000003f) \
    X(sharing_violation, SHARING_VIOLATION, 0xc0000043) \
    X(quota_exceeded, QUOTA_EXCEEDED, 0xc0000044) \
    X(ea_too_large, EA_TOO_LARGE, 0xc0000050) \
    X(nonexistent_ea_entry, NONEXISTENT_EA_ENTRY, 0xc0000051) \
    X(no_eas_on_file, NO_EAS_ON_FILE, 0xc0000052) \
    X(ea_corrupt_error, EA_CORRUPT_ERROR, 0xc0000053) \
    X(file_lock_conflict, FILE_LOCK_CONFLICT, 0xc0000054) \
    X(lock_not_granted, LOCK_NOT_GRANTED, 0xc0000055) \
    X(delete_pending, DELETE_PENDING, 0xc0000056) \
    X(unknown_revision, UNKNOWN_REVISION, 0xc0000058) \
    X(invalid_owner, INVALID_OWNER, 0xc000005a) \
    X(invalid_primary_group, INVALID_PRIMARY_GROUP, 0xc000005b) \
    X(no_logon_servers, NO_LOGON_SERVERS, 0xc000005e) \
    X(no_such_logon_session, NO_SUCH_LOGON_SESSION, 0xc000005f) \
    X(privilege_not_held, PRIVILEGE_NOT_HELD, 0xc0000061) \
    X(invalid_account_name, INVALID_ACCOUNT_NAME, 0xc0000062) \
    X(no_such_user, NO_SUCH_USER, 0xc0000064) \
    X(wrong_password, WRONG_PASSWORD, 0xc000006a) \
    X(logon_failure, LOGON_FAILURE, 0xc000006d) \
    X(account_restriction, ACCOUNT_RESTRICTION, 0xc000006e) \
    X(invalid_logon_hours, INVALID_LOGON_HOURS, 0xc000006f) \
    X(invalid_workstation, INVALID_WORKSTATION, 0xc0000070) \
    X(password_expired, PASSWORD_EXPIRED, 0xc0000071) \
    X(account_disabled, ACCOUNT_DISABLED, 0xc0000072) \
    X(none_mapped, NONE_MAPPED, 0xc0000073) \
    X(invalid_acl, INVALID_ACL, 0xc0000077) \
    X(invalid_sid, INVALID_SID, 0xc0000078) \
    X(invalid_security_descr, INVALID_SECURITY_DESCR, 0xc0000079) \
    X(range_not_locked, RANGE_NOT_LOCKED, 0xc000007e) \
    X(disk_full, DISK_FULL, 0xc000007f) \
    X(insufficient_resources, INSUFFICIENT_RESOURCES, 0xc000009a) \
    X(media_write_protected, MEDIA_WRITE_PROTECTED, 0xc00000a2) \
    X(device_not_ready, DEVICE_NOT_READY, 0xc00000a3) \
    X(bad_impersonation_level, BAD_IMPERSONATION_LEVEL, 0xc00000a5) \
    X(instance_not_available, INSTANCE_NOT_AVAILABLE, 0xc00000ab) \
    X(pipe_not_available, PIPE_NOT_AVAILABLE, 0xc00000ac) \
    X(invalid_pipe_state, INVALID_PIPE_STATE, 0xc00000ad) \
    X(pipe_busy, PIPE_BUSY, 0xc00000ae) \
    X(pipe_disconnected, PIPE_DISCONNECTED, 0xc00000b0) \
    X(pipe_closing, PIPE_CLOSING, 0xc00000b1) \
    X(pipe_connected, PIPE_CONNECTED, 0xc00000b2) \
    X(pipe_listening, PIPE_LISTENING, 0xc00000b3) \
    X(io_timeout, IO_TIMEOUT, 0xc00000b5) \
    X(file_forced_closed, FILE_FORCED_CLOSED, 0xc00000b6) \
    X(file_is_a_directory, FILE_IS_A_DIRECTORY, 0xc00000ba) \
    X(not_supported, NOT_SUPPORTED, 0xc00000bb) \
    X(duplicate_name, DUPLICATE_NAME, 0xc00000bd) \
    X(bad_network_path, BAD_NETWORK_PATH, 0xc00000be) \
    X(network_busy, NETWORK_BUSY, 0xc00000bf) \
    X(too_many_commands, TOO_MANY_COMMANDS, 0xc00000c1) \
    X(invalid_network_response, INVALID_NETWORK_RESPONSE, 0xc00000c3) \
    X(network_name_deleted, NETWORK_NAME_DELETED, 0xc00000c9) \
    X(network_access_denied, NETWORK_ACCESS_DENIED, 0xc00000ca) \
    X(bad_device_type, BAD_DEVICE_TYPE, 0xc00000cb) \
    X(bad_network_name, BAD_NETWORK_NAME, 0xc00000cc) \
    X(too_many_sessions, TOO_MANY_SESSIONS, 0xc00000ce) \
    X(request_not_accepted, REQUEST_NOT_ACCEPTED, 0xc00000d0) \
    X(not_same_device, NOT_SAME_DEVICE, 0xc00000d4) \
    X(file_renamed, FILE_RENAMED, 0xc00000d5) \
    X(pipe_empty, PIPE_EMPTY, 0xc00000d9) \
    X(oplock_not_granted, OPLOCK_NOT_GRANTED, 0xc00000e2) \
    X(invalid_oplock_protocol, INVALID_OPLOCK_PROTOCOL, 0xc00000e3) \
    X(internal_error, INTERNAL_ERROR, 0xc00000e5) \
    X(unexpected_io_error, UNEXPECTED_IO_ERROR, 0xc00000e9) \
    X(directory_not_empty, DIRECTORY_NOT_EMPTY, 0xc0000101) \
    X(file_corrupt_error, FILE_CORRUPT_ERROR, 0xc0000102) \
    X(not_a_directory, NOT_A_DIRECTORY, 0xc0000103) \
    X(name_too_long, NAME_TOO_LONG, 0xc0000106) \
    X(connection_in_use, CONNECTION_IN_USE, 0xc0000108) \
    X(too_many_opened_files, TOO_MANY_OPENED_FILES, 0xc000011f) \
    X(cancelled, CANCELLED, 0xc0000120) \
    X(cannot_delete, CANNOT_DELETE, 0xc0000121) \
    X(file_deleted, FILE_DELETED, 0xc0000123) \
    X(file_closed, FILE_CLOSED, 0xc0000128) \
    X(time_difference_at_dc, TIME_DIFFERENCE_AT_DC, 0xc0000133) \
    X(invalid_level, INVALID_LEVEL, 0xc0000148) \
    X(pipe_broken, PIPE_BROKEN, 0xc000014b) \
    X(unrecognized_volume, UNRECOGNIZED_VOLUME, 0xc000014f) \
    X(logon_type_not_granted, LOGON_TYPE_NOT_GRANTED, 0xc000015b) \
    X(unmappable_character, UNMAPPABLE_CHARACTER, 0xc0000162) \
    X(io_device_error, IO_DEVICE_ERROR, 0xc0000185) \
    X(account_expired, ACCOUNT_EXPIRED, 0xc0000193) \
    X(fs_driver_required, FS_DRIVER_REQUIRED, 0xc000019c) \
    X(short_names_not_enabled_on_volume, SHORT_NAMES_NOT_ENABLED_ON_VOLUME, 0xc000019f) \
    X(invalid_lock_range, INVALID_LOCK_RANGE, 0xc00001a1) \
    X(user_session_deleted, USER_SESSION_DELETED, 0xc0000203) \
    X(insuff_server_resources, INSUFF_SERVER_RESOURCES, 0xc0000205) \
    X(invalid_buffer_size, INVALID_BUFFER_SIZE, 0xc0000206) \
    X(connection_disconnected, CONNECTION_DISCONNECTED, 0xc000020c) \
    X(connection_reset, CONNECTION_RESET, 0xc000020d) \
    X(password_must_change, PASSWORD_MUST_CHANGE, 0xc0000224) \
    X(not_found, NOT_FOUND, 0xc0000225) \
    X(duplicate_objectid, DUPLICATE_OBJECTID, 0xc000022a) \
    X(objectid_exists, OBJECTID_EXISTS, 0xc000022b) \
    X(retry, RETRY, 0xc000022d) \
    X(account_locked_out, ACCOUNT_LOCKED_OUT, 0xc0000234) \
    X(connection_refused, CONNECTION_REFUSED, 0xc0000236) \
    X(request_aborted, REQUEST_ABORTED, 0xc0000240) \
    X(connection_aborted, CONNECTION_ABORTED, 0xc0000241) \
    X(user_mapped_file, USER_MAPPED_FILE, 0xc0000243) \
    X(path_not_covered, PATH_NOT_COVERED, 0xc0000257) \
    X(too_many_links, TOO_MANY_LINKS, 0xc0000265) \
    X(dfs_unavailable, DFS_UNAVAILABLE, 0xc000026d) \
    X(volume_dismounted, VOLUME_DISMOUNTED, 0xc000026e) \
    X(not_a_reparse_point, NOT_A_REPARSE_POINT, 0xc0000275) \
    X(io_reparse_tag_invalid, IO_REPARSE_TAG_INVALID, 0xc0000276) \
    X(io_reparse_tag_mismatch, IO_REPARSE_TAG_MISMATCH, 0xc0000277) \
    X(io_reparse_data_invalid, IO_REPARSE_DATA_INVALID, 0xc0000278) \
    X(io_reparse_tag_not_handled, IO_REPARSE_TAG_NOT_HANDLED, 0xc0000279) \
    X(objectid_not_found, OBJECTID_NOT_FOUND, 0xc00002f0) \
    X(network_session_expired, NETWORK_SESSION_EXPIRED, 0xc000035c) \
    X(downgrade_detected, DOWNGRADE_DETECTED, 0xc0000388) \
    X(compression_disabled, COMPRESSION_DISABLED, 0xc0000426) \
    X(file_system_limitation, FILE_SYSTEM_LIMITATION, 0xc0000427) \
    X(request_out_of_sequence, REQUEST_OUT_OF_SEQUENCE, 0xc000042a) \
    X(invalid_token, INVALID_TOKEN, 0xc0000465) \
    X(server_unavailable, SERVER_UNAVAILABLE, 0xc0000466) \
    X(file_not_available, FILE_NOT_AVAILABLE, 0xc0000467) \
    X(not_redundant_storage, NOT_REDUNDANT_STORAGE, 0xc0000479) \
    X(directory_not_supported, DIRECTORY_NOT_SUPPORTED, 0xc000047c) \
    X(share_unavailable, SHARE_UNAVAILABLE, 0xc0000480) \
    X(reparse_point_encountered, REPARSE_POINT_ENCOUNTERED, 0xc000050b) \
    X(disk_quota_exceeded, DISK_QUOTA_EXCEEDED, 0xc0000802) \
    X(file_too_large, FILE_TOO_LARGE, 0xc0000904) \
    X(cannot_break_oplock, CANNOT_BREAK_OPLOCK, 0xc0000909) \
    X(invalid_signature, INVALID_SIGNATURE, 0xc000a000) \
    X(hash_not_supported, HASH_NOT_SUPPORTED, 0xc000a100) \
    X(hash_not_present, HASH_NOT_PRESENT, 0xc000a101) \
    X(offload_read_file_not_supported, OFFLOAD_READ_FILE_NOT_SUPPORTED, 0xc000a2a3) \
    X(offload_write_file_not_supported, OFFLOAD_WRITE_FILE_NOT_SUPPORTED, 0xc000a2a4) \
    X(smb_no_preauth_integrity_hash_overlap, SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP, 0xc05d0000) \
    X(smb_bad_cluster_dialect, SMB_BAD_CLUSTER_DIALECT, 0xc05d0001)
// clang-format on

namespace sluice::smb::wire {

/// The status field of a response header. The enumerators are the values that the server or client
/// here distinguishes. Other values are kept unchanged.
enum class nt_status : std::uint32_t {
#define SLUICE_ENUMERATOR(enumerator, name, value) enumerator = value,
    SLUICE_NT_STATUS_LIST(SLUICE_ENUMERATOR)
#undef SLUICE_ENUMERATOR
};

/// Returns the name in [MS-ERREF], as in "STATUS_END_OF_FILE"; "STATUS_?" for a value without an
/// enumerator. Allocates: nothing. Complexity: linear in the list.
[[nodiscard]] std::string_view name_of(nt_status status) noexcept;

/// Returns the two upper bits: 0 success, 1 information, 2 warning, 3 error ([MS-ERREF] 2.3).
[[nodiscard]] constexpr unsigned severity_of(nt_status status) noexcept {
    return static_cast<std::uint32_t>(status) >> 30;
}
[[nodiscard]] constexpr bool is_error(nt_status status) noexcept {
    return severity_of(status) == 3;
}
[[nodiscard]] constexpr bool is_warning(nt_status status) noexcept {
    return severity_of(status) == 2;
}
/// Returns whether the status is a success or an information.
[[nodiscard]] constexpr bool is_success(nt_status status) noexcept {
    return severity_of(status) < 2;
}

}  // namespace sluice::smb::wire

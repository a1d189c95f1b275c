#pragma once

#include <cstdint>

namespace sluice::smb::wire {

/// The operation of an IOCTL, [MS-FSCC] 2.3 and [MS-SMB2] 2.2.31. A server also receives values
/// without an enumerator. It answers STATUS_INVALID_DEVICE_REQUEST, which clients interpret as "not
/// supported"; it must not close the connection.
enum class fsctl : std::uint32_t {
    dfs_get_referrals = 0x00060194,
    dfs_get_referrals_ex = 0x000601B0,
    set_reparse_point = 0x000900A4,
    get_reparse_point = 0x000900A8,
    delete_reparse_point = 0x000900AC,
    get_compression = 0x0009003C,
    create_or_get_object_id = 0x000900C0,
    set_sparse = 0x000900C4,
    query_allocated_ranges = 0x000940CF,
    set_zero_data = 0x000980C8,
    file_level_trim = 0x00098208,
    duplicate_extents_to_file = 0x00098344,
    duplicate_extents_to_file_ex = 0x000983E8,
    set_compression = 0x0009C040,
    get_integrity_information = 0x0009027C,
    set_integrity_information = 0x0009C280,
    query_file_regions = 0x00090284,
    pipe_peek = 0x0011400C,
    pipe_wait = 0x00110018,
    pipe_transceive = 0x0011C017,
    srv_copychunk = 0x001440F2,
    srv_copychunk_write = 0x001480F2,
    srv_enumerate_snapshots = 0x00144064,
    srv_request_resume_key = 0x00140078,
    srv_read_hash = 0x001441BB,
    lmr_request_resiliency = 0x001401D4,
    query_network_interface_info = 0x001401FC,
    validate_negotiate_info = 0x00140204,
};

}  // namespace sluice::smb::wire

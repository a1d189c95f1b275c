#pragma once

#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// The known controls; others are kept. [MS-SMB2] 2.2.31, [MS-FSCC] 2.3.
enum class control_code : std::uint32_t {
    dfs_get_referrals = 0x00060194,
    dfs_get_referrals_ex = 0x000601b0,
    set_reparse_point = 0x000900a4,
    get_reparse_point = 0x000900a8,
    delete_reparse_point = 0x000900ac,
    file_level_trim = 0x00098208,
    get_ntfs_volume_data = 0x00090064,
    read_file_usn_data = 0x000900eb,
    get_object_id = 0x0009009c,
    create_or_get_object_id = 0x000900c0,
    mark_handle = 0x000900fc,
    refs_stream_snapshot_management = 0x00090440,
    set_sparse = 0x000900c4,
    set_zero_data = 0x000980c8,
    query_allocated_ranges = 0x000940cf,
    query_file_regions = 0x00090284,
    get_compression = 0x0009003c,
    set_compression = 0x0009c040,
    get_integrity_information = 0x0009027c,
    set_integrity_information = 0x0009c280,
    duplicate_extents_to_file = 0x00098344,
    duplicate_extents_to_file_ex = 0x000983e8,
    offload_read = 0x00094264,
    offload_write = 0x00098268,
    pipe_peek = 0x0011400c,
    pipe_wait = 0x00110018,
    pipe_transceive = 0x0011c017,
    srv_request_resume_key = 0x00140078,
    srv_enumerate_snapshots = 0x00144064,
    srv_copychunk = 0x001440f2,
    srv_copychunk_write = 0x001480f2,
    srv_read_hash = 0x001441bb,
    lmr_request_resiliency = 0x001401d4,
    query_network_interface_info = 0x001401fc,
    validate_negotiate_info = 0x00140204,
};

/// The file id of controls that concern the server rather than a file.
inline constexpr file_id file_id_of_no_file{.persistent_part = le64(~0ULL), .volatile_part = le64(~0ULL)};

enum class ioctl_flags : std::uint32_t {
    is_ioctl = 0,
    is_fsctl = 1,  ///< the only valid kind; a server rejects requests without this flag
};

/// IOCTL, [MS-SMB2] 2.2.31: the envelope. The handler of the control decodes its content.
struct ioctl_args {
    control_code code = {};
    file_id file{};
    ioctl_flags flags = ioctl_flags::is_fsctl;
    std::uint32_t input_bytes_max = 0;   ///< limit for the input in the response
    std::uint32_t output_bytes_max = 0;  ///< limit for the output in the response
    bytes_view input{};

    [[nodiscard]] friend bool operator==(const ioctl_args&, const ioctl_args&) noexcept = default;
};

/// IOCTL response, [MS-SMB2] 2.2.32.
struct ioctl_reply {
    control_code code = {};
    file_id file{};
    bytes_view input{};  ///< rarely used by servers; always empty in encoded replies
    bytes_view output{};

    [[nodiscard]] friend bool operator==(const ioctl_reply&, const ioctl_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<ioctl_args> decode_ioctl(const message_view& message) noexcept;
[[nodiscard]] decoded<ioctl_reply> decode_ioctl_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const ioctl_args& args) noexcept;
void encode(byte_writer& writer, const ioctl_reply& reply) noexcept;

}  // namespace sluice::smb::wire

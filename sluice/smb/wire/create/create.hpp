#pragma once

#include "sluice/smb/wire/create/create_contexts.hpp"
#include "sluice/smb/wire/create/open_information.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class oplock_level : std::uint8_t {
    none = 0x00,
    level_2 = 0x01,
    exclusive = 0x08,
    batch = 0x09,
    lease = 0xff,  ///< see the lease context
};

enum class impersonation_level : std::uint32_t {
    anonymous = 0,
    identification = 1,
    impersonation = 2,
    delegate = 3
};

/// The kinds of access that other opens of the file may have ([MS-SMB2] 2.2.13, ShareAccess).
enum class share_access : std::uint32_t { none = 0, read = 1, write = 2, remove = 4 };
template <>
inline constexpr bool is_bit_flags<share_access> = true;

enum class create_disposition : std::uint32_t {
    supersede = 0,
    open = 1,
    create = 2,
    open_if = 3,
    overwrite = 4,
    overwrite_if = 5,
};

enum class create_options : std::uint32_t {
    none = 0,
    directory_file = 0x00000001,
    write_through = 0x00000002,
    sequential_only = 0x00000004,
    no_intermediate_buffering = 0x00000008,
    synchronous_io_alert = 0x00000010,
    synchronous_io_nonalert = 0x00000020,
    non_directory_file = 0x00000040,
    complete_if_oplocked = 0x00000100,
    no_ea_knowledge = 0x00000200,
    open_remote_instance = 0x00000400,
    random_access = 0x00000800,
    delete_on_close = 0x00001000,
    open_by_file_id = 0x00002000,
    open_for_backup_intent = 0x00004000,
    no_compression = 0x00008000,
    open_requiring_oplock = 0x00010000,
    disallow_exclusive = 0x00020000,
    reserve_opfilter = 0x00100000,
    open_reparse_point = 0x00200000,
    open_no_recall = 0x00400000,
    open_for_free_space_query = 0x00800000,
};
template <>
inline constexpr bool is_bit_flags<create_options> = true;

enum class create_action : std::uint32_t { superseded = 0, opened = 1, created = 2, overwritten = 3 };

enum class create_reply_flags : std::uint8_t { none = 0, reparse_point = 1 };
template <>
inline constexpr bool is_bit_flags<create_reply_flags> = true;

/// CREATE, [MS-SMB2] 2.2.13. The server rejects values without an enumerator: the status depends on
/// the field.
struct create_args {
    wire::oplock_level oplock_level = oplock_level::none;
    wire::impersonation_level impersonation_level = impersonation_level::impersonation;
    access_mask desired_access = access_mask::none;
    wire::file_attributes file_attributes = file_attributes::none;
    wire::share_access share_access = share_access::none;
    create_disposition disposition = create_disposition::open;
    create_options options = create_options::none;
    bytes_view name{};  ///< UTF-16LE, relative to the share; empty for its root
    create_request_contexts contexts{};

    [[nodiscard]] friend bool operator==(const create_args&, const create_args&) noexcept = default;
};

/// CREATE response, [MS-SMB2] 2.2.14.
struct create_reply {
    wire::oplock_level oplock_level = oplock_level::none;
    create_reply_flags flags = create_reply_flags::none;
    create_action action = create_action::opened;
    open_information information{};
    file_id file{};
    create_reply_contexts contexts{};

    [[nodiscard]] friend bool operator==(const create_reply&, const create_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`, `bad_text`, `misaligned`
/// (the contexts); and those of decode_create_request_contexts(). Allocates: nothing.
[[nodiscard]] decoded<create_args> decode_create(const message_view& message) noexcept;
[[nodiscard]] decoded<create_reply> decode_create_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const create_args& args) noexcept;
void encode(byte_writer& writer, const create_reply& reply) noexcept;

}  // namespace sluice::smb::wire

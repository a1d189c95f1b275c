#pragma once

#include <optional>

#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::wire {

/// The flags of a request, from 3.1.1 on.
enum class tree_connect_flags : std::uint16_t {
    none = 0,
    cluster_reconnect = 1,
    redirect_to_owner = 2,
    extension_present = 4,
};
template <>
inline constexpr bool is_bit_flags<tree_connect_flags> = true;

enum class share_type : std::uint8_t { disk = 1, pipe = 2, print = 3 };

enum class share_flags : std::uint32_t {
    manual_caching = 0,
    auto_caching = 0x10,
    vdo_caching = 0x20,
    no_caching = 0x30,
    caching_mask = 0x30,
    dfs = 0x1,
    dfs_root = 0x2,
    restrict_exclusive_opens = 0x100,
    force_shared_delete = 0x200,
    allow_namespace_caching = 0x400,
    access_based_directory_enum = 0x800,
    force_level_2_oplock = 0x1000,
    enable_hash_v1 = 0x2000,
    enable_hash_v2 = 0x4000,
    encrypt_data = 0x8000,
    identity_remoting = 0x40000,
    compress_data = 0x100000,
    isolated_transport = 0x200000,
};
template <>
inline constexpr bool is_bit_flags<share_flags> = true;

enum class share_capabilities : std::uint32_t {
    none = 0,
    dfs = 0x8,
    continuous_availability = 0x10,
    scaleout = 0x20,
    cluster = 0x40,
    asymmetric = 0x80,
    redirect_to_owner = 0x100,
};
template <>
inline constexpr bool is_bit_flags<share_capabilities> = true;

/// TREE_CONNECT, [MS-SMB2] 2.2.9 and its extension in 2.2.9.1.
struct tree_connect_args {
    tree_connect_flags flags = tree_connect_flags::none;
    bytes_view path{};  ///< UTF-16LE, \\server\share
    /// The data of the remoted identity context ([MS-SMB2] 2.2.9.2.1), with which a gateway
    /// connects on behalf of another user. Contexts of other kinds are ignored. Only with
    /// `extension_present`.
    std::optional<bytes_view> remoted_identity{};

    [[nodiscard]] friend bool operator==(const tree_connect_args&,
                                         const tree_connect_args&) noexcept = default;
};

/// TREE_CONNECT response, [MS-SMB2] 2.2.10.
struct tree_connect_reply {
    share_type type = share_type::disk;
    share_flags flags = share_flags::manual_caching;
    share_capabilities capabilities = share_capabilities::none;
    access_mask maximal_access = access_mask::none;

    [[nodiscard]] friend bool operator==(const tree_connect_reply&,
                                         const tree_connect_reply&) noexcept = default;
};

/// The largest number of contexts in an extension that is accepted.
inline constexpr std::size_t tree_connect_contexts_max = 16;

/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`, `bad_text`,
/// `too_many`, `duplicate`.
/// Allocates: nothing.
[[nodiscard]] decoded<tree_connect_args> decode_tree_connect(const message_view& message) noexcept;
[[nodiscard]] decoded<tree_connect_reply> decode_tree_connect_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const tree_connect_args& args) noexcept;
void encode(byte_writer& writer, const tree_connect_reply& reply) noexcept;

}  // namespace sluice::smb::wire

#pragma once

#include <optional>

#include "sluice/smb/wire/create/create_context_list.hpp"
#include "sluice/smb/wire/create/lease.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

// The known create contexts with decoded data: [MS-SMB2] 2.2.13.2 in a request, 2.2.14.2 in a
// response. The server checks whether a combination is valid (for example, two generations of
// durable handle).

namespace sluice::smb::wire {

enum class durable_flags : std::uint32_t { none = 0, persistent = 2 };
template <>
inline constexpr bool is_bit_flags<durable_flags> = true;

/// MxAc: requests the rights that the user would get, unless the file has not changed since
/// `timestamp`.
struct maximal_access_query {
    std::optional<filetime> timestamp{};

    [[nodiscard]] friend bool operator==(const maximal_access_query&,
                                         const maximal_access_query&) noexcept = default;
};
struct maximal_access_answer {
    nt_status status = nt_status::success;  ///< STATUS_NONE_MAPPED: unchanged since the timestamp
    access_mask access = access_mask::none;

    [[nodiscard]] friend bool operator==(const maximal_access_answer&,
                                         const maximal_access_answer&) noexcept = default;
};

/// DH2Q: requests a handle that survives a lost connection. The create GUID makes the request
/// repeatable.
struct durable_request_v2 {
    std::uint32_t timeout_ms = 0;  ///< 0: the server's choice
    durable_flags flags = durable_flags::none;
    guid create_guid;

    [[nodiscard]] friend bool operator==(const durable_request_v2&,
                                         const durable_request_v2&) noexcept = default;
};
struct durable_answer_v2 {
    std::uint32_t timeout_ms = 0;
    durable_flags flags = durable_flags::none;

    [[nodiscard]] friend bool operator==(const durable_answer_v2&,
                                         const durable_answer_v2&) noexcept = default;
};

/// DH2C: reconnects such a handle.
struct durable_reconnect_v2 {
    file_id file;
    guid create_guid;
    durable_flags flags = durable_flags::none;

    [[nodiscard]] friend bool operator==(const durable_reconnect_v2&,
                                         const durable_reconnect_v2&) noexcept = default;
};

/// A version of an application instance. The higher version wins when cluster nodes open the same
/// file.
struct app_instance_version {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    [[nodiscard]] friend auto operator<=>(const app_instance_version&,
                                          const app_instance_version&) noexcept = default;
};

/// QFid: numbers that identify the file for as long as it exists.
struct on_disk_id {
    std::uint64_t file = 0;
    std::uint64_t volume = 0;

    [[nodiscard]] friend bool operator==(const on_disk_id&, const on_disk_id&) noexcept = default;
};

/// AAPL, Apple's extension: a query that a client sends once per connection, or per file.
enum class aapl_fields : std::uint64_t {
    none = 0,
    server_capabilities = 1,
    volume_capabilities = 2,
    model = 4,
};
template <>
inline constexpr bool is_bit_flags<aapl_fields> = true;

enum class aapl_capabilities : std::uint64_t {
    none = 0,
    read_directory_attributes = 1,
    osx_copy_file = 2,
    unix_based = 4,
    nfs_aces = 8,
    read_directory_attributes_v2 = 16,
    high_fidelity = 32,
};
template <>
inline constexpr bool is_bit_flags<aapl_capabilities> = true;

enum class aapl_volume_capabilities : std::uint64_t {
    none = 0,
    resolve_id = 1,
    case_sensitive = 2,
    full_sync = 4,
};
template <>
inline constexpr bool is_bit_flags<aapl_volume_capabilities> = true;

struct aapl_server_query {
    aapl_fields fields = aapl_fields::none;
    aapl_capabilities client_capabilities = aapl_capabilities::none;

    [[nodiscard]] friend bool operator==(const aapl_server_query&,
                                         const aapl_server_query&) noexcept = default;
};
struct aapl_resolve_id {
    std::uint64_t file = 0;

    [[nodiscard]] friend bool operator==(const aapl_resolve_id&, const aapl_resolve_id&) noexcept = default;
};
struct aapl_request {
    std::optional<aapl_server_query> query{};  ///< one of the two
    std::optional<aapl_resolve_id> resolve{};

    [[nodiscard]] friend bool operator==(const aapl_request&, const aapl_request&) noexcept = default;
};

/// The longest model name. Decoders reject a longer one; encoders require that it fits.
inline constexpr std::size_t aapl_model_bytes_max = 256;

/// The response to a server query: those of the requested fields that the server knows.
struct aapl_answer {
    std::optional<aapl_capabilities> server{};
    std::optional<aapl_volume_capabilities> volume{};
    std::optional<bytes_view> model{};  ///< UTF-16LE; "MacSamba" makes Finder draw a server

    [[nodiscard]] friend bool operator==(const aapl_answer&, const aapl_answer&) noexcept = default;
};

struct create_request_contexts {
    std::optional<bytes_view> extended_attributes{};       ///< ExtA: FILE_FULL_EA_INFORMATION
    std::optional<bytes_view> security_descriptor{};       ///< SecD
    bool durable = false;                                  ///< DHnQ
    std::optional<file_id> durable_reconnect{};            ///< DHnC
    std::optional<std::uint64_t> allocation_bytes{};       ///< AlSi
    std::optional<maximal_access_query> maximal_access{};  ///< MxAc
    /// TWrp: the snapshot to open the file in.
    std::optional<filetime> timewarp{};
    bool on_disk_id = false;                                     ///< QFid
    std::optional<wire::lease> lease{};                          ///< RqLs
    std::optional<durable_request_v2> durable_v2{};              ///< DH2Q
    std::optional<durable_reconnect_v2> durable_reconnect_v2{};  ///< DH2C
    std::optional<aapl_request> aapl{};                          ///< AAPL
    std::optional<guid> app_instance_id{};
    std::optional<wire::app_instance_version> app_instance_version{};
    std::optional<std::uint32_t> posix_mode{};  ///< the mode of a new file (POSIX extensions)

    [[nodiscard]] friend bool operator==(const create_request_contexts&,
                                         const create_request_contexts&) noexcept = default;
};

struct create_reply_contexts {
    bool durable = false;                                   ///< DHnQ
    std::optional<maximal_access_answer> maximal_access{};  ///< MxAc
    std::optional<wire::on_disk_id> on_disk_id{};           ///< QFid
    std::optional<wire::lease> lease{};                     ///< RqLs
    std::optional<durable_answer_v2> durable_v2{};          ///< DH2Q
    std::optional<aapl_answer> aapl{};                      ///< AAPL
    /// Links, reparse tag, mode, owner and group, in the form of the POSIX extensions.
    std::optional<bytes_view> posix{};

    [[nodiscard]] friend bool operator==(const create_reply_contexts&,
                                         const create_reply_contexts&) noexcept = default;
};

/// Decode a list. Contexts of other names are ignored.
/// Errors: those of create_context_reader::next(); `bad_value` (data of a length its name
/// excludes), `truncated` (data shorter than what it announces), `bad_text`, `too_long`,
/// `duplicate`. Allocates: nothing.
[[nodiscard]] decoded<create_request_contexts> decode_create_request_contexts(bytes_view list) noexcept;
[[nodiscard]] decoded<create_reply_contexts> decode_create_reply_contexts(bytes_view list) noexcept;

/// Write a list, aligned, and return its length, which is zero if there is no context.
std::size_t encode(byte_writer& writer, const create_request_contexts& contexts) noexcept;
std::size_t encode(byte_writer& writer, const create_reply_contexts& contexts) noexcept;

}  // namespace sluice::smb::wire

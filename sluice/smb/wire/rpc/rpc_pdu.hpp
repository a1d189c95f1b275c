#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/guid.hpp"

// The messages of connection-oriented DCE/RPC, C706 chapter 12 and [MS-RPCE] 2.2.2.

namespace sluice::smb::wire {

enum class rpc_packet : std::uint8_t {
    request = 0,
    response = 2,
    fault = 3,
    bind = 11,
    bind_ack = 12,
    bind_nak = 13,
    alter_context = 14,
    alter_context_response = 15,
    auth3 = 16,
    cancel = 18,
    orphaned = 19,
};

inline constexpr std::uint8_t rpc_first_fragment = 0x01;
inline constexpr std::uint8_t rpc_last_fragment = 0x02;
inline constexpr std::uint8_t rpc_did_not_execute = 0x20;
inline constexpr std::uint8_t rpc_object_uuid = 0x80;

// clang-format off
/// The header of every fragment.
struct rpc_head {
    le8  version;          //  0  5
    le8  version_minor;    //  1
    le8  packet;           //  2
    le8  flags;            //  3
    le32 representation;   //  4  0x10: little-endian, ASCII, IEEE
    le16 fragment_length;  //  8  including this header
    le16 auth_length;      // 10
    le32 call;             // 12
};
static_assert(sizeof(rpc_head) == 16);

/// An interface or transfer syntax with its version, minor in the upper half.
struct rpc_syntax {
    guid id;       //  0
    le32 version;  // 16
    [[nodiscard]] friend bool operator==(const rpc_syntax&, const rpc_syntax&) noexcept = default;
};
static_assert(sizeof(rpc_syntax) == 20);

/// The header of a request or a response after rpc_head.
struct rpc_call_head {
    le32 allocation_hint;  // 0
    le16 context;          // 4
    le16 operation;        // 6  in a response: cancel count
};
static_assert(sizeof(rpc_call_head) == 8);
// clang-format on

/// The lengths of fragments: the least that every peer accepts, the largest sent, and the largest
/// accepted.
inline constexpr std::size_t rpc_fragment_bytes_least = 1432;
inline constexpr std::size_t rpc_fragment_bytes_sent_max = 4280;
inline constexpr std::size_t rpc_fragment_bytes_received_max = 5840;

extern const rpc_syntax rpc_ndr_syntax;
extern const rpc_syntax rpc_srvsvc_interface;
extern const rpc_syntax rpc_wkssvc_interface;
extern const rpc_syntax rpc_lsarpc_interface;
extern const rpc_syntax rpc_samr_interface;

/// Returns `head` if it is valid. At least 16 bytes were received.
/// Errors: `bad_protocol_id` for another version or representation, `bad_structure_size` for a
/// fragment shorter than its header, `too_long` above rpc_fragment_bytes_received_max.
[[nodiscard]] decoded<rpc_head> checked(const rpc_head& head) noexcept;

/// A context that a client proposes.
struct rpc_context {
    std::uint16_t id = 0;
    rpc_syntax interface{};
    bool ndr_proposed = false;
};
/// The body of BIND and ALTER_CONTEXT.
struct rpc_bind {
    std::uint16_t sends_max = 0;
    std::uint16_t receives_max = 0;
    std::uint32_t association_group = 0;
    std::vector<rpc_context> contexts{};
};
/// Errors: `truncated`, `too_many` contexts. Allocates: the contexts, at most rpc_contexts_max.
[[nodiscard]] decoded<rpc_bind> decode_rpc_bind(bytes_view body) noexcept;
inline constexpr std::size_t rpc_contexts_max = 16;

/// A complete fragment. Encoding writes its header, with the length filled in, and `body`.
struct rpc_fragment {
    rpc_packet packet = rpc_packet::request;
    std::uint8_t flags = rpc_first_fragment | rpc_last_fragment;
    std::uint32_t call = 0;
};
void append_rpc_fragment(std::vector<std::byte>& out, const rpc_fragment& fragment, bytes_view body);

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

#include <initializer_list>

namespace sluice::smb::wire {
namespace {

// clang-format off
struct bind_head_wire {
    le16 sends_max;          //  0
    le16 receives_max;       //  2
    le32 association_group;  //  4
    le8  contexts;           //  8
    le8  reserved1;          //  9
    le16 reserved2;          // 10
};
static_assert(sizeof(bind_head_wire) == 12);

struct context_head_wire {
    le16 id;                 // 0
    le8  transfer_syntaxes;  // 2
    le8  reserved;           // 3
    rpc_syntax interface;    // 4
};
static_assert(sizeof(context_head_wire) == 24);
// clang-format on

constexpr std::uint32_t little_endian_ascii_ieee = 0x10;

constexpr guid guid_of(std::initializer_list<unsigned> bytes) {
    guid made;
    std::size_t i = 0;
    for (const unsigned byte : bytes)
        made.bytes[i++] = static_cast<std::byte>(byte);
    return made;
}

}  // namespace

// 8a885d04-1ceb-11c9-9fe8-08002b104860, 4b324fc8-1670-01d3-1278-5a47bf6ee188,
// 6bffd098-a112-3610-9833-46c3f87e345a, 12345778-1234-abcd-ef00-0123456789ab,
// 12345778-1234-abcd-ef00-0123456789ac
constexpr rpc_syntax rpc_ndr_syntax{
    guid_of({0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60}),
    le32(2)};
constexpr rpc_syntax rpc_srvsvc_interface{
    guid_of({0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88}),
    le32(3)};
constexpr rpc_syntax rpc_wkssvc_interface{
    guid_of({0x98, 0xD0, 0xFF, 0x6B, 0x12, 0xA1, 0x10, 0x36, 0x98, 0x33, 0x46, 0xC3, 0xF8, 0x7E, 0x34, 0x5A}),
    le32(1)};
constexpr rpc_syntax rpc_lsarpc_interface{
    guid_of({0x78, 0x57, 0x34, 0x12, 0x34, 0x12, 0xCD, 0xAB, 0xEF, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB}),
    le32(0)};
constexpr rpc_syntax rpc_samr_interface{
    guid_of({0x78, 0x57, 0x34, 0x12, 0x34, 0x12, 0xCD, 0xAB, 0xEF, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAC}),
    le32(1)};

decoded<rpc_head> checked(const rpc_head& head) noexcept {
    if (head.version.value() != 5 or head.version_minor.value() > 1 or
        (head.representation.value() & 0xFF) != little_endian_ascii_ieee)
        return std::unexpected(decode_error::bad_protocol_id);
    if (head.fragment_length.value() < sizeof(rpc_head))
        return std::unexpected(decode_error::bad_structure_size);
    if (head.fragment_length.value() > rpc_fragment_bytes_received_max)
        return std::unexpected(decode_error::too_long);
    return head;
}

decoded<rpc_bind> decode_rpc_bind(bytes_view body) noexcept {
    byte_reader reader(body);
    const auto head = reader.take<bind_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->contexts.value() > rpc_contexts_max) return std::unexpected(decode_error::too_many);
    rpc_bind bind{.sends_max = head->sends_max.value(),
                  .receives_max = head->receives_max.value(),
                  .association_group = head->association_group.value()};
    for (unsigned left = head->contexts.value(); left != 0; --left) {
        const auto context = reader.take<context_head_wire>();
        if (!context) return std::unexpected(decode_error::truncated);
        rpc_context proposed{.id = context->id.value(), .interface = context->interface};
        for (unsigned syntaxes = context->transfer_syntaxes.value(); syntaxes != 0; --syntaxes) {
            const auto syntax = reader.take<rpc_syntax>();
            if (!syntax) return std::unexpected(decode_error::truncated);
            proposed.ndr_proposed = proposed.ndr_proposed or * syntax == rpc_ndr_syntax;
        }
        bind.contexts.push_back(proposed);
    }
    return bind;
}

void append_rpc_fragment(std::vector<std::byte>& out, const rpc_fragment& fragment, bytes_view body) {
    ENSURE(body.size() <= rpc_fragment_bytes_sent_max - sizeof(rpc_head));
    const rpc_head head{.version = le8(5),
                        .version_minor = {},
                        .packet = le8(static_cast<std::uint8_t>(fragment.packet)),
                        .flags = le8(fragment.flags),
                        .representation = le32(little_endian_ascii_ieee),
                        .fragment_length = le16(static_cast<std::uint16_t>(sizeof(rpc_head) + body.size())),
                        .auth_length = {},
                        .call = le32(fragment.call)};
    const bytes_view wire = bytes_of(head);
    out.insert(out.end(), wire.begin(), wire.end());
    out.insert(out.end(), body.begin(), body.end());
}

}  // namespace sluice::smb::wire

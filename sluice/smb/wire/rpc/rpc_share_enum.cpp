#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"

#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint16_t net_share_enum = 15;

// clang-format off
struct bind_wire {
    le16 sends_max;          //  0
    le16 receives_max;       //  2
    le32 association_group;  //  4
    le32 contexts;           //  8
    le16 context;            // 12
    le16 transfer_syntaxes;  // 14
    rpc_syntax interface;    // 16
    rpc_syntax transfer;     // 36
};
static_assert(sizeof(bind_wire) == 56);

struct bind_ack_wire {
    le16 sends_max;          // 0
    le16 receives_max;       // 2
    le32 association_group;  // 4
    le16 address_length;     // 8
};
static_assert(sizeof(bind_ack_wire) == 10);
// clang-format on

// Returns the body of a complete fragment of the expected kind.
decoded<bytes_view> body_of(bytes_view fragment, rpc_packet wanted) noexcept {
    const auto head = fragment.take<rpc_head>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (const auto good = checked(*head); !good) return std::unexpected(good.error());
    const auto whole = fragment.first(head->fragment_length.value());
    if (!whole) return std::unexpected(decode_error::truncated);
    if (rpc_packet(head->packet.value()) != wanted or head->auth_length.value() != 0)
        return std::unexpected(decode_error::unsupported);
    return *whole->from(sizeof(rpc_head));
}

}  // namespace

std::vector<std::byte> encode_rpc_bind(const rpc_syntax& interface, std::uint32_t call) {
    const bind_wire bind{.sends_max = le16(rpc_fragment_bytes_sent_max),
                         .receives_max = le16(rpc_fragment_bytes_sent_max),
                         .association_group = {},
                         .contexts = le32(1),
                         .context = {},
                         .transfer_syntaxes = le16(1),
                         .interface = interface,
                         .transfer = rpc_ndr_syntax};
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::bind, .call = call}, bytes_of(bind));
    return out;
}

std::vector<std::byte> encode_srvsvc_bind(std::uint32_t call) {
    return encode_rpc_bind(rpc_srvsvc_interface, call);
}

decoded<void> decode_srvsvc_bind_ack(bytes_view fragment) noexcept {
    const auto body = body_of(fragment, rpc_packet::bind_ack);
    if (!body) return std::unexpected(body.error());
    byte_reader reader(*body);
    const auto head = reader.take<bind_ack_wire>();
    if (!head or !reader.skip(head->address_length.value()) or !reader.align_to(4))
        return std::unexpected(decode_error::truncated);
    const auto results = reader.take<le32>();
    const auto result = reader.take<le16>();
    if (!results or !result) return std::unexpected(decode_error::truncated);
    if ((results->value() & 0xFF) == 0 or result->value() != 0)
        return std::unexpected(decode_error::unsupported);
    return {};
}

std::vector<std::byte> encode_share_enum_request(std::uint32_t call, std::string_view server) {
    ndr_writer arguments(rpc_fragment_bytes_least - sizeof(rpc_head) - sizeof(rpc_call_head));
    arguments.pointer(true);
    arguments.text(server);
    arguments.u32(1);
    arguments.u32(1);
    arguments.pointer(true);
    arguments.u32(0);
    arguments.pointer(false);
    arguments.u32(0xFFFFFFFF);  // preferred length: no limit
    arguments.pointer(false);
    ENSURE(!arguments.overflowed(), "the server's name is too long");
    const rpc_call_head head{.allocation_hint = le32(static_cast<std::uint32_t>(arguments.bytes().size())),
                             .context = {},
                             .operation = le16(net_share_enum)};
    std::vector<std::byte> body(bytes_of(head).begin(), bytes_of(head).end());
    body.insert(body.end(), arguments.bytes().begin(), arguments.bytes().end());
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::request, .call = call}, body);
    return out;
}

decoded<rpc_results_piece> decode_rpc_response(bytes_view fragment) noexcept {
    const auto body = body_of(fragment, rpc_packet::response);
    if (!body) return std::unexpected(body.error());
    const auto results = body->from(sizeof(rpc_call_head));
    if (!results) return std::unexpected(decode_error::truncated);
    const rpc_head head = *fragment.take<rpc_head>();
    return rpc_results_piece{
        .bytes = *results, .call = head.call.value(), .last = (head.flags.value() & rpc_last_fragment) != 0};
}

decoded<share_enum_results> decode_share_enum_results(bytes_view results) noexcept {
    constexpr auto truncated = std::unexpected(decode_error::truncated);
    ndr_reader in(results);
    share_enum_results found;
    const auto level = in.u32();
    const auto branch = in.u32();
    const auto container = in.pointer();
    if (!level or !branch or !container) return truncated;
    const auto count = *container ? in.u32() : 0;
    const auto array = *container ? in.pointer() : false;
    if (!count or !array) return truncated;
    if (*array) {
        const auto elements = in.u32();
        if (!elements or *elements != *count or *level != 1 or *branch != 1) return truncated;
        if (*count > rpc_shares_max) return std::unexpected(decode_error::too_many);
        for (std::uint32_t left = *count; left != 0; --left) {
            const auto name = in.pointer();
            const auto type = in.u32();
            const auto comment = in.pointer();
            if (!name or !*name or !type or !comment or !*comment) return truncated;
            found.shares.push_back({.type = *type});
        }
        for (rpc_share& share : found.shares) {
            auto name = in.text();
            auto comment = in.text();
            if (!name or !comment) return truncated;
            share.name = std::move(*name);
            share.comment = std::move(*comment);
        }
    }
    const auto total = in.u32();
    const auto resumes = in.pointer();
    if (!total or !resumes or (*resumes and !in.u32())) return truncated;
    const auto status = in.u32();
    if (!status) return truncated;
    found.status = *status;
    return found;
}

}  // namespace sluice::smb::wire

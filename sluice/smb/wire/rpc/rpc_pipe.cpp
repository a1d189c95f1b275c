#include "sluice/smb/wire/rpc/rpc_pipe.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::smb::wire {
namespace {

// clang-format off
struct bind_reply_wire {
    le16 sends_max;          // 0
    le16 receives_max;       // 2
    le32 association_group;  // 4
    le16 address_length;     // 8  including the terminator; the address follows
};
static_assert(sizeof(bind_reply_wire) == 10);

struct context_reply_wire {
    le16 result;         // 0  0 accepted, 2 rejected by the provider
    le16 reason;         // 2  1 unknown interface, 2 no common transfer syntax
    rpc_syntax transfer;  // 4
};
static_assert(sizeof(context_reply_wire) == 24);

struct fault_wire {
    rpc_call_head call;  //  0
    le32 status;         //  8
    le32 reserved;       // 12
};
static_assert(sizeof(fault_wire) == 16);
// clang-format on

constexpr std::uint16_t nak_authentication_unknown = 8;
constexpr std::uint32_t association_group = 0x53F0;  // any nonzero number; groups are not supported

struct service_name {
    rpc_syntax interface;
    std::string_view address;
};

service_name service_name_of(rpc_service service) noexcept {
    switch (service) {
        case rpc_service::srvsvc:
            return {rpc_srvsvc_interface, "\\PIPE\\srvsvc"};
        case rpc_service::wkssvc:
            return {rpc_wkssvc_interface, "\\PIPE\\wkssvc"};
        case rpc_service::lsarpc:
            return {rpc_lsarpc_interface, "\\PIPE\\lsarpc"};
        case rpc_service::samr:
            return {rpc_samr_interface, "\\PIPE\\samr"};
    }
    ENSURE(false, "a pipe has one of these services");
    return {};
}

context_reply_wire answer_to(const rpc_context& proposed, const rpc_syntax& served) noexcept {
    const bool known = proposed.interface == served;
    if (known and proposed.ndr_proposed) return {.result = {}, .reason = {}, .transfer = rpc_ndr_syntax};
    return {.result = le16(2), .reason = le16(known ? 2 : 1), .transfer = {}};
}

}  // namespace

bool rpc_pipe::write(bytes_view bytes, std::size_t unread_bytes) {
    if (broken_) return false;
    calls_of_write_ = 0;
    do {
        // A write can have many fragments; only one is kept at a time.
        const std::size_t room = rpc_fragment_bytes_received_max - in_.size();
        const bytes_view some = *bytes.first(std::min(bytes.size(), room));
        in_.insert(in_.end(), some.begin(), some.end());
        bytes = *bytes.from(some.size());
        if (!take_fragments(unread_bytes)) return disconnect(), false;
    } while (!bytes.empty());
    return true;
}

bool rpc_pipe::take_fragments(std::size_t unread_bytes) {
    byte_reader reader{bytes_view(in_)};
    while (reader.remaining() >= sizeof(rpc_head)) {
        const auto head = checked(*reader.rest().take<rpc_head>());
        if (!head) return false;
        if (reader.remaining() < head->fragment_length.value()) break;
        const bytes_view fragment = *reader.take_bytes(head->fragment_length.value());
        if (!take_fragment(*head, *fragment.from(sizeof(rpc_head))) or
            out_.size() + unread_bytes > limits_.unread_bytes_max)
            return false;
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(reader.position()));
    ENSURE(in_.size() < rpc_fragment_bytes_received_max, "the rest is the beginning of a fragment");
    return true;
}

void rpc_pipe::disconnect() noexcept {
    broken_ = true;
    in_ = std::vector<std::byte>();
    arguments_ = std::vector<std::byte>();
    out_ = std::vector<std::byte>();
    handles_ = rpc_handle_table();
    contexts_ = std::vector<std::uint16_t>();
}

bool rpc_pipe::take_fragment(const rpc_head& head, bytes_view body) {
    switch (rpc_packet(head.packet.value())) {
        case rpc_packet::bind:
        case rpc_packet::alter_context:
            return take_bind(head, body);
        case rpc_packet::request:
            return take_request(head, body);
        case rpc_packet::cancel:
        case rpc_packet::orphaned:
            in_call_ = false;
            arguments_ = std::vector<std::byte>();
            return true;
        default:
            return false;
    }
}

bool rpc_pipe::take_bind(const rpc_head& head, bytes_view body) {
    if (in_call_) return false;
    const bool alters = rpc_packet(head.packet.value()) == rpc_packet::alter_context;
    const std::uint32_t call = head.call.value();
    if (head.auth_length.value() != 0) {
        // Reason, and no versions.
        std::array<std::byte, 3> nak{std::byte{nak_authentication_unknown}};
        append_rpc_fragment(out_, {.packet = rpc_packet::bind_nak, .call = call}, nak);
        return true;
    }
    const auto bind = decode_rpc_bind(body);
    if (!bind) return false;
    const auto& [served, address] = service_name_of(service_);
    if (!alters)
        fragment_bytes_max_ = std::clamp<std::size_t>(bind->receives_max, rpc_fragment_bytes_least,
                                                      rpc_fragment_bytes_sent_max);

    std::array<std::byte, 1024> room;
    byte_writer writer{mutable_bytes(room)};
    const auto fragment_max = static_cast<std::uint16_t>(fragment_bytes_max_);
    writer.put(bind_reply_wire{.sends_max = le16(fragment_max),
                               .receives_max = le16(rpc_fragment_bytes_sent_max),
                               .association_group = le32(association_group),
                               .address_length = le16(static_cast<std::uint16_t>(address.size() + 1))});
    writer.put_bytes({reinterpret_cast<const std::byte*>(address.data()), address.size()});
    writer.put(le8());
    writer.align_to(4);  // the header is 16 bytes, so alignment counts the same from there
    writer.put(le32(static_cast<std::uint32_t>(bind->contexts.size())));
    for (const rpc_context& proposed : bind->contexts) {
        const context_reply_wire reply = answer_to(proposed, served);
        writer.put(reply);
        if (reply.result.value() != 0 or has_context(proposed.id)) continue;
        if (contexts_.size() == rpc_contexts_max) return false;
        contexts_.push_back(proposed.id);
    }
    const auto packet = alters ? rpc_packet::alter_context_response : rpc_packet::bind_ack;
    append_rpc_fragment(out_, {.packet = packet, .call = call}, writer.finish().value());
    return true;
}

bool rpc_pipe::take_request(const rpc_head& head, bytes_view body) {
    byte_reader reader(body);
    const auto call = reader.take<rpc_call_head>();
    const std::uint8_t flags = head.flags.value();
    if (!call or head.auth_length.value() != 0) return false;
    if ((flags & rpc_object_uuid) != 0 and !reader.skip(sizeof(guid))) return false;

    const bool first = (flags & rpc_first_fragment) != 0;
    // A second beginning, or a continuation without a beginning.
    if (first == in_call_) return false;
    if (first) {
        in_call_ = true;
        call_head_ = head;
        call_context_ = call->context.value();
        operation_ = call->operation.value();
        arguments_.clear();
    } else if (!(head.call == call_head_.call)) {
        return false;
    }
    if (reader.remaining() > limits_.arguments_bytes_max - arguments_.size()) return false;
    arguments_.insert(arguments_.end(), reader.rest().begin(), reader.rest().end());
    if ((flags & rpc_last_fragment) == 0) return true;
    if (++calls_of_write_ > limits_.calls_per_write_max) return false;
    in_call_ = false;
    answer_call(head.call.value());
    arguments_ = std::vector<std::byte>();
    return true;
}

void rpc_pipe::answer_call(std::uint32_t call) {
    if (!has_context(call_context_)) return refuse_call(call, rpc_fault::unknown_interface);
    ndr_writer results(limits_.results_bytes_max);
    const rpc_call asked{.operation = operation_, .arguments = arguments_};
    const rpc_fault fault = execute(asked, results);
    if (fault != rpc_fault::none) return refuse_call(call, fault);
    if (results.overflowed()) return refuse_call(call, rpc_fault::no_memory);

    const std::size_t piece_max = fragment_bytes_max_ - sizeof(rpc_head) - sizeof(rpc_call_head);
    byte_reader rest(results.bytes());
    std::uint8_t flags = rpc_first_fragment;
    do {
        const rpc_call_head head{.allocation_hint = le32(static_cast<std::uint32_t>(rest.remaining())),
                                 .context = le16(call_context_),
                                 .operation = {}};
        const bytes_view piece = *rest.take_bytes(std::min(rest.remaining(), piece_max));
        if (rest.remaining() == 0) flags |= rpc_last_fragment;
        std::vector<std::byte> body(bytes_of(head).begin(), bytes_of(head).end());
        body.insert(body.end(), piece.begin(), piece.end());
        append_rpc_fragment(out_, {.packet = rpc_packet::response, .flags = flags, .call = call}, body);
        flags = 0;
    } while (rest.remaining() != 0);
}

rpc_fault rpc_pipe::execute(const rpc_call& call, ndr_writer& results) {
    switch (service_) {
        case rpc_service::srvsvc:
            return call_srvsvc(host_, call, results);
        case rpc_service::wkssvc:
            return call_wkssvc(host_, call, results);
        case rpc_service::lsarpc:
            return call_lsarpc(host_, handles_, call, results);
        case rpc_service::samr:
            return call_samr(host_, handles_, call, results);
    }
    return rpc_fault::operation_range;
}

void rpc_pipe::refuse_call(std::uint32_t call, rpc_fault why) {
    const fault_wire fault{.call = {.allocation_hint = {}, .context = le16(call_context_), .operation = {}},
                           .status = le32(static_cast<std::uint32_t>(why)),
                           .reserved = {}};
    append_rpc_fragment(out_,
                        {.packet = rpc_packet::fault,
                         .flags = rpc_first_fragment | rpc_last_fragment | rpc_did_not_execute,
                         .call = call},
                        bytes_of(fault));
}

bool rpc_pipe::has_context(std::uint16_t id) const noexcept {
    return std::ranges::find(contexts_, id) != contexts_.end();
}

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/fsctl/fsctl_session.hpp"

#include <algorithm>
#include <cstddef>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/fscc/fscc_entry_list.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct validate_head_wire {
    le32 capabilities;   //  0
    guid id;             //  4
    le16 security_mode;  // 20
    le16 dialect;        // 22  in the request: number of dialects
};
static_assert(sizeof(validate_head_wire) == 24 and offsetof(validate_head_wire, security_mode) == 20);

struct interface_wire {
    le32 next;           //  0
    le32 index;          //  4
    le32 capability;     //  8
    le32 reserved;       // 12
    le64 link_speed;     // 16
    le16 family;         // 24  start of the sockaddr storage, which is always 128 bytes
    be16 port;           // 26
    std::array<std::byte, 124> address;  // 28
};
static_assert(sizeof(interface_wire) == 152 and offsetof(interface_wire, family) == 24);

struct pipe_wait_wire {
    le64 timeout;      //  0
    le32 name_length;  //  8
    le8  has_timeout;  // 12
    le8  padding;      // 13
};
static_assert(sizeof(pipe_wait_wire) == 14);

struct resiliency_wire {
    le32 timeout_ms;  // 0
    le32 reserved;    // 4
};
static_assert(sizeof(resiliency_wire) == 8);
// clang-format on

constexpr std::uint16_t family_ipv4 = 2;
constexpr std::uint16_t family_ipv6 = 23;
constexpr std::size_t ipv6_address_offset = 4;  // after the flow label

interface_wire wire_of(const network_interface& shown) noexcept {
    interface_wire wire{.next = {},
                        .index = le32(shown.index),
                        .capability = le32(shown.capability),
                        .reserved = {},
                        .link_speed = le64(shown.link_speed_bits_per_second),
                        .family = le16(shown.ipv6 ? family_ipv6 : family_ipv4),
                        .port = {},
                        .address = {}};
    std::copy_n(shown.address.begin(), shown.ipv6 ? 16 : 4,
                wire.address.begin() + (shown.ipv6 ? ipv6_address_offset : 0));
    return wire;
}

}  // namespace

void encode(byte_writer& writer, const validate_negotiate_request& request) noexcept {
    writer.put(validate_head_wire{.capabilities = le32(request.capabilities),
                                  .id = request.client,
                                  .security_mode = le16(request.security_mode),
                                  .dialect = le16(static_cast<std::uint16_t>(request.dialects.size()))});
    for (const std::uint16_t dialect : request.dialects)
        writer.put(le16(dialect));
}

decoded<validate_negotiate_request> decode_validate_negotiate_request(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<validate_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->dialect.value() > negotiate_dialects_max) return std::unexpected(decode_error::too_many);
    validate_negotiate_request request{.capabilities = head->capabilities.value(),
                                       .client = head->id,
                                       .security_mode = head->security_mode.value()};
    for (unsigned left = head->dialect.value(); left != 0; --left) {
        const auto dialect = reader.take<le16>();
        if (!dialect) return std::unexpected(decode_error::truncated);
        request.dialects.push_back(dialect->value());
    }
    return request;
}

void encode(byte_writer& writer, const validate_negotiate_reply& reply) noexcept {
    writer.put(validate_head_wire{.capabilities = le32(reply.capabilities),
                                  .id = reply.server,
                                  .security_mode = le16(reply.security_mode),
                                  .dialect = le16(reply.dialect_revision)});
}

decoded<validate_negotiate_reply> decode_validate_negotiate_reply(bytes_view bytes) noexcept {
    const auto wire = bytes.take<validate_head_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return validate_negotiate_reply{.capabilities = wire->capabilities.value(),
                                    .server = wire->id,
                                    .security_mode = wire->security_mode.value(),
                                    .dialect_revision = wire->dialect.value()};
}

void encode_network_interfaces(byte_writer& writer,
                               const std::vector<network_interface>& interfaces) noexcept {
    for (std::size_t i = 0; i < interfaces.size(); ++i) {
        interface_wire wire = wire_of(interfaces[i]);
        if (i + 1 < interfaces.size()) wire.next = le32(sizeof(interface_wire));
        writer.put(wire);
    }
}

decoded<std::vector<network_interface>> decode_network_interfaces(bytes_view bytes) noexcept {
    std::vector<network_interface> interfaces;
    entry_list_reader list(bytes, sizeof(interface_wire));
    for (;;) {
        const auto entry = list.next();
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return interfaces;
        const interface_wire wire = *(*entry)->take<interface_wire>();
        const bool ipv6 = wire.family.value() == family_ipv6;
        if (!ipv6 and wire.family.value() != family_ipv4) continue;
        network_interface shown{.index = wire.index.value(),
                                .capability = wire.capability.value(),
                                .link_speed_bits_per_second = wire.link_speed.value(),
                                .ipv6 = ipv6};
        std::copy_n(wire.address.begin() + (ipv6 ? ipv6_address_offset : 0), ipv6 ? 16 : 4,
                    shown.address.begin());
        interfaces.push_back(shown);
    }
}

void encode(byte_writer& writer, const resiliency_request& request) noexcept {
    writer.put(resiliency_wire{.timeout_ms = le32(request.timeout_ms), .reserved = {}});
}

decoded<resiliency_request> decode_resiliency_request(bytes_view bytes) noexcept {
    const auto wire = bytes.take<resiliency_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return resiliency_request{.timeout_ms = wire->timeout_ms.value()};
}

decoded<void> encode(byte_writer& writer, const pipe_wait_request& request) noexcept {
    const auto length = utf16_bytes_of(request.name);
    if (!length) return std::unexpected(length.error());
    writer.put(pipe_wait_wire{.timeout = le64(request.timeout_ticks.value_or(0)),
                              .name_length = le32(static_cast<std::uint32_t>(*length)),
                              .has_timeout = le8(request.timeout_ticks.has_value()),
                              .padding = {}});
    if (const auto put = put_utf16(writer, request.name); !put) return std::unexpected(put.error());
    return {};
}

decoded<pipe_wait_request> decode_pipe_wait_request(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto wire = reader.take<pipe_wait_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    const auto utf16 = reader.take_bytes(wire->name_length.value());
    if (!utf16) return std::unexpected(decode_error::range_outside_message);
    auto name = utf8_of(*utf16);
    if (!name) return std::unexpected(name.error());
    pipe_wait_request request{.name = std::move(*name)};
    if (wire->has_timeout.value() != 0) request.timeout_ticks = wire->timeout.value();
    return request;
}

}  // namespace sluice::smb::wire

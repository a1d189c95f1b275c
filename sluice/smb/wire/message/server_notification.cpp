#include "sluice/smb/wire/message/server_notification.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

// The notification of a closed session follows: four reserved bytes.
struct server_notification {
    le16 structure_size;  //  0  12, with the bytes that follow
    le16 reserved;        //  2
    le32 type;            //  4
};
static_assert(sizeof(server_notification) == 8 and wire_type<server_notification>);
static_assert(offsetof(server_notification, reserved) == 2 and offsetof(server_notification, type) == 4);

constexpr std::size_t session_closed_bytes = 4;
constexpr std::uint32_t session_closed = 0;

}  // namespace

decoded<session_closed_notification> decode_server_notification(const message_view& message) noexcept {
    const auto body = message.body().take<server_notification>();
    if (!body) return std::unexpected(decode_error::truncated);
    if (body->structure_size.value() < sizeof(server_notification))
        return std::unexpected(decode_error::bad_structure_size);
    if (body->type.value() != session_closed) return std::unexpected(decode_error::unsupported);
    return session_closed_notification{};
}

void encode(byte_writer& writer, const session_closed_notification&) noexcept {
    writer.put(server_notification{.structure_size = le16(sizeof(server_notification) + session_closed_bytes),
                                   .reserved = le16(0),
                                   .type = le32(session_closed)});
    writer.put_zeros(session_closed_bytes);
}

}  // namespace sluice::smb::wire

#include "sluice/smb/wire/file/oplock_break.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct raw_oplock_break {
    le16 structure_size;  // 0  always 24
    le8 oplock_level;     // 2
    le8 reserved;         // 3
    le32 reserved2;       // 4
    file_id file;         // 8
};
static_assert(sizeof(raw_oplock_break) == 24 and wire_type<raw_oplock_break>);
static_assert(offsetof(raw_oplock_break, oplock_level) == 2 and offsetof(raw_oplock_break, file) == 8);

struct raw_lease_break {
    le16 structure_size;  //  0  always 36
    le16 reserved;        //  2
    le32 flags;           //  4  reserved
    lease_key key;        //  8
    le32 state;           // 24
    le64 duration;        // 28  reserved
};
static_assert(sizeof(raw_lease_break) == 36 and wire_type<raw_lease_break>);
static_assert(offsetof(raw_lease_break, key) == 8 and offsetof(raw_lease_break, state) == 24);

struct raw_lease_break_notification {
    le16 structure_size;     //  0  always 44
    le16 new_epoch;          //  2
    le32 flags;              //  4
    lease_key key;           //  8
    le32 current_state;      // 24
    le32 new_state;          // 28
    le32 break_reason;       // 32  reserved, like the following fields
    le32 access_mask_hint;   // 36
    le32 share_access_hint;  // 40
};
static_assert(sizeof(raw_lease_break_notification) == 44 and wire_type<raw_lease_break_notification>);
static_assert(offsetof(raw_lease_break_notification, key) == 8 and
              offsetof(raw_lease_break_notification, new_state) == 28);

/// Returns StructureSize, which distinguishes the three forms. Each decoder checks it again. Zero
/// if the message is too short.
std::size_t structure_size_of(const message_view& message) noexcept {
    const auto size = message.body().take<le16>();
    return size ? size->value() : 0;
}

decoded<oplock_break> decode_oplock(const message_view& message) noexcept {
    const auto body = take_body<raw_oplock_break>(message, sizeof(raw_oplock_break));
    if (!body) return std::unexpected(body.error());
    return oplock_break{.oplock_level = oplock_level(body->oplock_level.value()), .file = body->file};
}

void put(byte_writer& writer, const oplock_break& oplock) noexcept {
    writer.put(raw_oplock_break{.structure_size = le16(sizeof(raw_oplock_break)),
                                .oplock_level = le8(static_cast<std::uint8_t>(oplock.oplock_level)),
                                .reserved = {},
                                .reserved2 = {},
                                .file = oplock.file});
}

decoded<lease_break> decode_lease_break(const message_view& message) noexcept {
    const auto body = take_body<raw_lease_break>(message, sizeof(raw_lease_break));
    if (!body) return std::unexpected(body.error());
    return lease_break{.key = body->key, .state = lease_state(body->state.value())};
}

void put(byte_writer& writer, const lease_break& lease) noexcept {
    writer.put(raw_lease_break{.structure_size = le16(sizeof(raw_lease_break)),
                               .reserved = {},
                               .flags = {},
                               .key = lease.key,
                               .state = le32(bits_of(lease.state)),
                               .duration = {}});
}

decoded<lease_break_notification> decode_notification(const message_view& message) noexcept {
    const auto body = take_body<raw_lease_break_notification>(message, sizeof(raw_lease_break_notification));
    if (!body) return std::unexpected(body.error());
    return lease_break_notification{.new_epoch = body->new_epoch.value(),
                                    .flags = lease_break_flags(body->flags.value()),
                                    .key = body->key,
                                    .current_state = lease_state(body->current_state.value()),
                                    .new_state = lease_state(body->new_state.value())};
}

void put(byte_writer& writer, const lease_break_notification& notification) noexcept {
    writer.put(raw_lease_break_notification{.structure_size = le16(sizeof(raw_lease_break_notification)),
                                            .new_epoch = le16(notification.new_epoch),
                                            .flags = le32(bits_of(notification.flags)),
                                            .key = notification.key,
                                            .current_state = le32(bits_of(notification.current_state)),
                                            .new_state = le32(bits_of(notification.new_state)),
                                            .break_reason = {},
                                            .access_mask_hint = {},
                                            .share_access_hint = {}});
}

/// Returns `part`, or its error, as a variant of the message.
template <class Message, class Part>
decoded<Message> as_message(const decoded<Part>& part) noexcept {
    if (!part) return std::unexpected(part.error());
    return Message{*part};
}

}  // namespace

decoded<oplock_break_args> decode_oplock_break(const message_view& message) noexcept {
    if (structure_size_of(message) == sizeof(raw_lease_break)) {
        return as_message<oplock_break_args>(decode_lease_break(message));
    }
    return as_message<oplock_break_args>(decode_oplock(message));
}

void encode(byte_writer& writer, const oplock_break_args& args) noexcept {
    std::visit([&](const auto& acknowledged) { put(writer, acknowledged); }, args.acknowledged);
}

decoded<oplock_break_reply> decode_oplock_break_reply(const message_view& message) noexcept {
    switch (structure_size_of(message)) {
        case sizeof(raw_lease_break):
            return as_message<oplock_break_reply>(decode_lease_break(message));
        case sizeof(raw_lease_break_notification):
            return as_message<oplock_break_reply>(decode_notification(message));
        default:
            return as_message<oplock_break_reply>(decode_oplock(message));
    }
}

void encode(byte_writer& writer, const oplock_break_reply& reply) noexcept {
    std::visit([&](const auto& sent) { put(writer, sent); }, reply.sent);
}

}  // namespace sluice::smb::wire

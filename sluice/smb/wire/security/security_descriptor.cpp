#include "sluice/smb/wire/security/security_descriptor.hpp"

#include <cstddef>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct descriptor_wire {
    le8  revision;  //  0  always 1
    le8  reserved;  //  1
    le16 control;   //  2
    le32 owner;     //  4  offsets from here; zero for "none"
    le32 group;     //  8
    le32 sacl;      // 12
    le32 dacl;      // 16
};
static_assert(sizeof(descriptor_wire) == 20 and offsetof(descriptor_wire, dacl) == 16);
// clang-format on

// Returns the bytes from a part on.
decoded<bytes_view> part_at(bytes_view bytes, le32 offset) noexcept {
    if (offset.value() < sizeof(descriptor_wire)) return std::unexpected(decode_error::range_outside_message);
    const auto rest = bytes.from(offset.value());
    if (!rest) return std::unexpected(decode_error::range_outside_message);
    return *rest;
}

decoded<std::optional<sid>> sid_at(bytes_view bytes, le32 offset) noexcept {
    if (offset.value() == 0) return std::nullopt;
    const auto rest = part_at(bytes, offset);
    if (!rest) return std::unexpected(rest.error());
    byte_reader reader(*rest);
    const auto who = take_sid(reader);
    if (!who) return std::unexpected(who.error());
    return *who;
}

decoded<std::optional<acl>> acl_at(bytes_view bytes, le32 offset, bool present) noexcept {
    if (!present or offset.value() == 0) return std::nullopt;
    const auto rest = part_at(bytes, offset);
    if (!rest) return std::unexpected(rest.error());
    auto list = decode_acl(*rest);
    if (!list) return std::unexpected(list.error());
    return std::move(*list);
}

// Returns the offset of the next part, from the beginning of the descriptor.
le32 offset_from(std::size_t start, const byte_writer& writer) noexcept {
    return le32(static_cast<std::uint32_t>(writer.position() - start));
}

access_mask rights_of(std::uint32_t bits, bool directory) noexcept {
    access_mask rights = access_mask::none;
    if (bits & 4) rights |= file_generic_read;
    if ((bits & 4) and !directory) rights |= file_generic_execute;
    if (bits & 2) rights |= file_generic_write | access_mask::delete_object;
    if ((bits & 2) and directory) rights |= access_mask::delete_child;
    if (bits & 1) rights |= file_generic_execute;
    return rights;
}

access_mask owner_rights_of(std::uint32_t bits, bool directory) noexcept {
    const std::uint32_t everything = directory ? 7 : 6;
    if ((bits & everything) == everything) return file_all_access;
    return rights_of(bits, directory) | access_mask::read_control | access_mask::write_dac |
           access_mask::write_owner | access_mask::read_attributes | access_mask::write_attributes |
           access_mask::synchronize;
}

}  // namespace

std::size_t encoded_bytes(const security_descriptor& descriptor) noexcept {
    std::size_t size = sizeof(descriptor_wire);
    if (descriptor.owner) size += descriptor.owner->encoded_bytes();
    if (descriptor.group) size += descriptor.group->encoded_bytes();
    if (descriptor.dacl) size += encoded_bytes(*descriptor.dacl);
    if (descriptor.sacl) size += encoded_bytes(*descriptor.sacl);
    return size;
}

decoded<void> encode(byte_writer& writer, const security_descriptor& descriptor) noexcept {
    if (encoded_bytes(descriptor) > security_descriptor_bytes_max)
        return std::unexpected(decode_error::too_long);
    const std::size_t start = writer.position();
    descriptor_control control = descriptor.control | descriptor_control::self_relative;
    if (descriptor.sacl) control |= descriptor_control::sacl_present;
    if (descriptor.dacl) control |= descriptor_control::dacl_present;
    descriptor_wire head{.revision = le8(1),
                         .reserved = {},
                         .control = le16(bits_of(control)),
                         .owner = {},
                         .group = {},
                         .sacl = {},
                         .dacl = {}};
    const auto room_for_head = writer.reserve<descriptor_wire>();
    if (descriptor.owner) {
        head.owner = offset_from(start, writer);
        encode(writer, *descriptor.owner);
    }
    if (descriptor.group) {
        head.group = offset_from(start, writer);
        encode(writer, *descriptor.group);
    }
    if (descriptor.dacl) {
        head.dacl = offset_from(start, writer);
        if (const auto put = encode(writer, *descriptor.dacl); !put) return put;
    }
    if (descriptor.sacl) {
        head.sacl = offset_from(start, writer);
        if (const auto put = encode(writer, *descriptor.sacl); !put) return put;
    }
    writer.patch(room_for_head, head);
    return {};
}

decoded<security_descriptor> decode_security_descriptor(bytes_view bytes) noexcept {
    if (bytes.size() > security_descriptor_bytes_max) return std::unexpected(decode_error::too_long);
    const auto head = bytes.take<descriptor_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->revision.value() != 1) return std::unexpected(decode_error::bad_value);
    const auto control = descriptor_control(head->control.value());
    if (!has(control, descriptor_control::self_relative)) return std::unexpected(decode_error::unsupported);

    const auto owner = sid_at(bytes, head->owner);
    if (!owner) return std::unexpected(owner.error());
    const auto group = sid_at(bytes, head->group);
    if (!group) return std::unexpected(group.error());
    auto sacl = acl_at(bytes, head->sacl, has(control, descriptor_control::sacl_present));
    if (!sacl) return std::unexpected(sacl.error());
    auto dacl = acl_at(bytes, head->dacl, has(control, descriptor_control::dacl_present));
    if (!dacl) return std::unexpected(dacl.error());
    return security_descriptor{.control = control,
                               .owner = *owner,
                               .group = *group,
                               .sacl = std::move(*sacl),
                               .dacl = std::move(*dacl)};
}

security_descriptor descriptor_of(const unix_ownership& file) noexcept {
    acl list;
    const auto add = [&](const sid& who, access_mask rights) {
        if (rights != access_mask::none) list.entries.push_back({.rights = rights, .who = who});
    };
    add(file.owner, owner_rights_of(file.mode >> 6 & 7, file.directory));
    add(file.group, rights_of(file.mode >> 3 & 7, file.directory));
    add(sid_everyone, rights_of(file.mode & 7, file.directory));
    return {.control = descriptor_control::self_relative | descriptor_control::dacl_present,
            .owner = file.owner,
            .group = file.group,
            .sacl = std::nullopt,
            .dacl = std::move(list)};
}

}  // namespace sluice::smb::wire

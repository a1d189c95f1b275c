#include "sluice/smb/wire/security/acl.hpp"

#include <algorithm>
#include <limits>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct acl_wire {
    le8  revision;   // 0
    le8  reserved1;  // 1
    le16 size;       // 2  of all bytes, including this header
    le16 count;      // 4
    le16 reserved2;  // 6
};
static_assert(sizeof(acl_wire) == 8);

struct ace_wire {
    le8  type;   // 0
    le8  flags;  // 1
    le16 size;   // 2  of all bytes, including this header
};
static_assert(sizeof(ace_wire) == 4);
// clang-format on

constexpr std::size_t length_max = std::numeric_limits<std::uint16_t>::max();

std::size_t encoded_bytes(const ace& entry) noexcept {
    const std::size_t own = entry.understood() ? sizeof(le32) + entry.who.encoded_bytes() : 0;
    return sizeof(ace_wire) + own + (entry.rest.size() + 3) / 4 * 4;
}

void put_ace(byte_writer& writer, const ace& entry) noexcept {
    writer.put(ace_wire{.type = le8(static_cast<std::uint8_t>(entry.type)),
                        .flags = le8(bits_of(entry.flags)),
                        .size = le16(static_cast<std::uint16_t>(encoded_bytes(entry)))});
    if (entry.understood()) {
        writer.put(le32(bits_of(entry.rights)));
        encode(writer, entry.who);
    }
    writer.put_bytes(entry.rest);
    writer.put_zeros(-entry.rest.size() & 3);
}

decoded<ace> take_ace(byte_reader& reader) noexcept {
    const auto head = reader.take<ace_wire>();
    if (!head) return std::unexpected(decode_error::bad_chain);
    const std::size_t size = head->size.value();
    if (size < sizeof(ace_wire)) return std::unexpected(decode_error::bad_chain);
    if (size % 4 != 0) return std::unexpected(decode_error::misaligned);
    const auto body = reader.take_bytes(size - sizeof(ace_wire));
    if (!body) return std::unexpected(decode_error::bad_chain);

    ace entry{.type = ace_type(head->type.value()), .flags = ace_flags(head->flags.value())};
    byte_reader fields(*body);
    if (entry.understood()) {
        const auto rights = fields.take<le32>();
        if (!rights) return std::unexpected(decode_error::truncated);
        const auto who = take_sid(fields);
        if (!who) return std::unexpected(who.error());
        entry.rights = access_mask(rights->value());
        entry.who = *who;
    }
    entry.rest.assign(fields.rest().begin(), fields.rest().end());
    return entry;
}

int rank(const ace& entry) noexcept {
    if (has(entry.flags, ace_flags::inherited)) return 2;
    return entry.denies() ? 0 : 1;
}

}  // namespace

std::size_t encoded_bytes(const acl& list) noexcept {
    std::size_t size = sizeof(acl_wire);
    for (const ace& entry : list.entries)
        size += encoded_bytes(entry);
    return size;
}

decoded<void> encode(byte_writer& writer, const acl& list) noexcept {
    // An entry is a part of the list, so that its length fits its field if that of the list does.
    const std::size_t size = encoded_bytes(list);
    if (size > length_max) return std::unexpected(decode_error::too_long);
    writer.put(acl_wire{.revision = le8(list.revision),
                        .reserved1 = {},
                        .size = le16(static_cast<std::uint16_t>(size)),
                        .count = le16(static_cast<std::uint16_t>(list.entries.size())),
                        .reserved2 = {}});
    for (const ace& entry : list.entries)
        put_ace(writer, entry);
    return {};
}

decoded<acl> decode_acl(bytes_view bytes) noexcept {
    const auto head = bytes.take<acl_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->revision.value() != 2 and head->revision.value() != 4)
        return std::unexpected(decode_error::bad_value);
    const auto whole = bytes.first(head->size.value());
    if (!whole) return std::unexpected(decode_error::truncated);
    const auto body = whole->from(sizeof(acl_wire));
    if (!body) return std::unexpected(decode_error::bad_chain);

    acl list{.revision = head->revision.value()};
    // The count is not trusted: an entry has at least its header.
    list.entries.reserve(std::min<std::size_t>(head->count.value(), body->size() / sizeof(ace_wire)));
    byte_reader reader(*body);
    for (unsigned left = head->count.value(); left != 0; --left) {
        auto entry = take_ace(reader);
        if (!entry) return std::unexpected(entry.error());
        list.entries.push_back(std::move(*entry));
    }
    return list;
}

bool is_canonical(const acl& list) noexcept {
    return std::ranges::is_sorted(list.entries, {}, rank);
}

void make_canonical(acl& list) {
    std::vector<ace> ordered;
    ordered.reserve(list.entries.size());
    for (const int wanted : {0, 1, 2})
        for (ace& entry : list.entries)
            if (rank(entry) == wanted) ordered.push_back(std::move(entry));
    list.entries = std::move(ordered);
}

}  // namespace sluice::smb::wire

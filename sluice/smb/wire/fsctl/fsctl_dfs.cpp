#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"

#include <array>
#include <cstddef>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct request_ex_wire {
    le16 version_max;  // 0
    le16 flags;        // 2
    le32 data_length;  // 4
};
static_assert(sizeof(request_ex_wire) == 8 and offsetof(request_ex_wire, data_length) == 4);

struct reply_head_wire {
    le16 path_consumed;  // 0
    le16 count;          // 2
    le32 flags;          // 4
};
static_assert(sizeof(reply_head_wire) == 8 and offsetof(reply_head_wire, flags) == 4);

// The start of an entry in all versions. The target follows in version 1.
struct entry_head_wire {
    le16 version;      // 0
    le16 size;         // 2
    le16 server_type;  // 4
    le16 flags;        // 6
};
static_assert(sizeof(entry_head_wire) == 8 and offsetof(entry_head_wire, flags) == 6);

// Offsets are from the start of the entry.
struct entry_v2_wire {
    entry_head_wire head;     //  0
    le32 proximity;           //  8
    le32 time_to_live;        // 12
    le16 path;                // 16
    le16 alternate_path;      // 18
    le16 target;              // 20
};
static_assert(sizeof(entry_v2_wire) == 22 and offsetof(entry_v2_wire, target) == 20);

struct entry_v3_wire {
    entry_head_wire head;     //  0
    le32 time_to_live;        //  8
    le16 path;                // 12
    le16 alternate_path;      // 14
    le16 target;              // 16
    std::array<std::byte, 16> site;  // 18  zero
};
static_assert(sizeof(entry_v3_wire) == 34 and offsetof(entry_v3_wire, target) == 16);
// clang-format on

constexpr std::uint16_t has_site_name = 0x1;
constexpr std::uint32_t storage_servers = 0x2;      // the targets have files
constexpr std::uint16_t name_list_referral = 0x2;   // in versions 3 and 4
constexpr std::uint16_t target_set_boundary = 0x4;  // in version 4
constexpr std::size_t terminator_bytes = 2;

// The UTF-16 before the first zero unit, with which it must end.
[[nodiscard]] decoded<std::string> terminated_text(bytes_view from) noexcept {
    byte_reader reader(from);
    std::size_t length = 0;
    for (;;) {
        const auto unit = reader.take<le16>();
        if (!unit) return std::unexpected(decode_error::missing);
        if (unit->value() == 0) break;
        length += sizeof(le16);
        if (length > dfs_path_bytes_max) return std::unexpected(decode_error::too_long);
    }
    ENSURE(length <= from.size(), "the units of a text are in the message");
    return utf8_of(*from.first(length));
}

[[nodiscard]] decoded<std::string> text_at(bytes_view entry, std::size_t offset) noexcept {
    if (offset > entry.size()) return std::unexpected(decode_error::range_outside_message);
    return terminated_text(*entry.slice({.offset = offset, .length = entry.size() - offset}));
}

void put_terminated(byte_writer& writer, std::string_view text) noexcept {
    const auto put = put_utf16(writer, text);
    ENSURE(put.has_value(), "its length was counted, so the text is well-formed");
    writer.put(le16(0));
}

[[nodiscard]] std::size_t fixed_bytes_of(std::uint16_t version) noexcept {
    ENSURE(version != 0 and version <= dfs_version_max, "a version of referrals");
    if (version == 1) return sizeof(entry_head_wire);
    return version == 2 ? sizeof(entry_v2_wire) : sizeof(entry_v3_wire);
}

// A text on the wire, with its terminator.
[[nodiscard]] decoded<std::size_t> text_bytes_of(std::string_view text) noexcept {
    const auto bytes = utf16_bytes_of(text);
    if (!bytes) return bytes;
    if (*bytes > dfs_path_bytes_max) return std::unexpected(decode_error::too_long);
    return *bytes + terminator_bytes;
}

[[nodiscard]] std::size_t checked_text_bytes(std::string_view text) noexcept {
    const auto bytes = text_bytes_of(text);
    ENSURE(bytes.has_value(), "encoded_bytes_of() has checked the texts");
    return *bytes;
}

// The targets are not roots: the server type is 0.
[[nodiscard]] entry_head_wire head_of(std::uint16_t version, std::size_t size, bool is_first) noexcept {
    const bool has_boundary = version == 4 and is_first;
    return {.version = le16(version),
            .size = le16(static_cast<std::uint16_t>(size)),
            .server_type = {},
            .flags = le16(has_boundary ? target_set_boundary : std::uint16_t{})};
}

void put_entries_of_version_1(byte_writer& writer, const dfs_referral_reply& reply) noexcept {
    for (const std::string& target : reply.targets) {
        writer.put(head_of(1, sizeof(entry_head_wire) + checked_text_bytes(target), false));
        put_terminated(writer, target);
    }
}

// All entries share the path of the link, which is first of the texts.
void put_entries(byte_writer& writer, const dfs_referral_reply& reply) noexcept {
    const std::size_t size = fixed_bytes_of(reply.version);
    std::size_t before_texts = size * reply.targets.size();
    std::size_t target_at = checked_text_bytes(reply.path);
    for (const std::string& target : reply.targets) {
        const entry_head_wire head = head_of(reply.version, size, &target == &reply.targets.front());
        const le16 path(static_cast<std::uint16_t>(before_texts));
        const le16 at(static_cast<std::uint16_t>(before_texts + target_at));
        ENSURE(before_texts + target_at <= 0xffff, "the bounds of paths and targets keep offsets in 16 bits");
        const le32 lifetime(reply.time_to_live_seconds);
        if (reply.version == 2)
            writer.put(entry_v2_wire{.head = head,
                                     .proximity = {},
                                     .time_to_live = lifetime,
                                     .path = path,
                                     .alternate_path = path,
                                     .target = at});
        else
            writer.put(entry_v3_wire{.head = head,
                                     .time_to_live = lifetime,
                                     .path = path,
                                     .alternate_path = path,
                                     .target = at,
                                     .site = {}});
        before_texts -= size;
        target_at += checked_text_bytes(target);
    }
    put_terminated(writer, reply.path);
    for (const std::string& target : reply.targets)
        put_terminated(writer, target);
}

// The fields of an entry of version 2 to 4.
struct entry_fields {
    std::uint32_t time_to_live = 0;
    std::size_t path = 0;
    std::size_t target = 0;
};
[[nodiscard]] decoded<entry_fields> fields_of(bytes_view entry, const entry_head_wire& head) noexcept {
    if (head.version.value() == 2) {
        const auto wire = entry.take<entry_v2_wire>();
        if (!wire) return std::unexpected(decode_error::truncated);
        return entry_fields{.time_to_live = wire->time_to_live.value(),
                            .path = wire->path.value(),
                            .target = wire->target.value()};
    }
    if ((head.flags.value() & name_list_referral) != 0) return std::unexpected(decode_error::unsupported);
    const auto wire = entry.take<entry_v3_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return entry_fields{.time_to_live = wire->time_to_live.value(),
                        .path = wire->path.value(),
                        .target = wire->target.value()};
}

// `entry` goes on to the end of the message, where its texts are.
[[nodiscard]] decoded<void> add_entry(bytes_view entry, const entry_head_wire& head,
                                      dfs_referral_reply& into) noexcept {
    const bool is_first = into.targets.empty();
    if (head.version.value() == 1) {
        auto target = text_at(*entry.first(head.size.value()), sizeof(entry_head_wire));
        if (!target) return std::unexpected(target.error());
        into.targets.push_back(*std::move(target));
        return {};
    }
    const auto fields = fields_of(entry, head);
    if (!fields) return std::unexpected(fields.error());
    auto target = text_at(entry, fields->target);
    if (!target) return std::unexpected(target.error());
    into.targets.push_back(*std::move(target));
    if (!is_first) return {};
    auto path = text_at(entry, fields->path);
    if (!path) return std::unexpected(path.error());
    into.path = *std::move(path);
    into.time_to_live_seconds = fields->time_to_live;
    return {};
}

}  // namespace

decoded<void> encode(byte_writer& writer, const dfs_referral_request& request) noexcept {
    if (const auto bytes = utf16_bytes_of(request.path); !bytes) return std::unexpected(bytes.error());
    writer.put(le16(request.version_max));
    put_terminated(writer, request.path);
    return {};
}

decoded<dfs_referral_request> decode_dfs_referral_request(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto version = reader.take<le16>();
    if (!version) return std::unexpected(decode_error::truncated);
    auto path = terminated_text(reader.rest());
    if (!path) return std::unexpected(path.error());
    return dfs_referral_request{.version_max = version->value(), .path = *std::move(path)};
}

decoded<void> encode(byte_writer& writer, const dfs_referral_request_ex& request) noexcept {
    const auto path = utf16_bytes_of(request.path);
    const auto site = utf16_bytes_of(request.site.value_or(""));
    if (!path or !site) return std::unexpected(decode_error::bad_text);
    const std::size_t data = sizeof(le16) + *path + (request.site ? sizeof(le16) + *site : 0);
    writer.put(request_ex_wire{.version_max = le16(request.version_max),
                               .flags = le16(request.site ? has_site_name : std::uint16_t{}),
                               .data_length = le32(static_cast<std::uint32_t>(data))});
    writer.put(le16(static_cast<std::uint16_t>(*path)));
    (void)put_utf16(writer, request.path);
    if (!request.site) return {};
    writer.put(le16(static_cast<std::uint16_t>(*site)));
    (void)put_utf16(writer, *request.site);
    return {};
}

namespace {

[[nodiscard]] decoded<std::string> counted_text(byte_reader& reader) noexcept {
    const auto length = reader.take<le16>();
    if (!length) return std::unexpected(decode_error::truncated);
    if (length->value() > dfs_path_bytes_max) return std::unexpected(decode_error::too_long);
    const auto utf16 = reader.take_bytes(length->value());
    if (!utf16) return std::unexpected(decode_error::range_outside_message);
    return utf8_of(*utf16);
}

}  // namespace

decoded<dfs_referral_request_ex> decode_dfs_referral_request_ex(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<request_ex_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    const auto data = reader.take_bytes(head->data_length.value());
    if (!data) return std::unexpected(decode_error::range_outside_message);
    byte_reader fields(*data);
    auto path = counted_text(fields);
    if (!path) return std::unexpected(path.error());
    if (path->ends_with('\0')) path->pop_back();
    if (path->contains('\0')) return std::unexpected(decode_error::bad_text);
    dfs_referral_request_ex request{.version_max = head->version_max.value(), .path = *std::move(path)};
    if ((head->flags.value() & has_site_name) == 0) return request;
    auto site = counted_text(fields);
    if (!site) return std::unexpected(site.error());
    request.site = *std::move(site);
    return request;
}

decoded<std::size_t> encoded_bytes_of(const dfs_referral_reply& reply) noexcept {
    ENSURE(reply.version != 0 and reply.version <= dfs_version_max, "a version of referrals");
    if (reply.targets.size() > dfs_targets_max) return std::unexpected(decode_error::too_many);
    std::size_t bytes = sizeof(reply_head_wire) + fixed_bytes_of(reply.version) * reply.targets.size();
    if (reply.version != 1 and not reply.targets.empty()) {
        const auto path = text_bytes_of(reply.path);
        if (!path) return path;
        bytes += *path;
    }
    for (const std::string& target : reply.targets) {
        const auto text = text_bytes_of(target);
        if (!text) return text;
        bytes += *text;
    }
    return bytes;
}

decoded<void> encode(byte_writer& writer, const dfs_referral_reply& reply) noexcept {
    if (const auto checked = encoded_bytes_of(reply); !checked) return std::unexpected(checked.error());
    writer.put(reply_head_wire{.path_consumed = le16(reply.path_consumed_bytes),
                               .count = le16(static_cast<std::uint16_t>(reply.targets.size())),
                               .flags = le32(storage_servers)});
    if (reply.targets.empty()) return {};
    if (reply.version == 1)
        put_entries_of_version_1(writer, reply);
    else
        put_entries(writer, reply);
    return {};
}

decoded<dfs_referral_reply> decode_dfs_referral_reply(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<reply_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->count.value() > dfs_targets_max) return std::unexpected(decode_error::too_many);
    dfs_referral_reply reply{.path_consumed_bytes = head->path_consumed.value()};
    for (unsigned left = head->count.value(); left != 0; --left) {
        const bytes_view entry = reader.rest();
        const auto its = entry.take<entry_head_wire>();
        if (!its) return std::unexpected(decode_error::truncated);
        const std::uint16_t version = its->version.value();
        if (version == 0 or version > dfs_version_max) return std::unexpected(decode_error::bad_value);
        if (reply.targets.empty()) reply.version = version;
        if (version != reply.version or its->size.value() < fixed_bytes_of(version))
            return std::unexpected(decode_error::bad_value);
        if (!reader.skip(its->size.value())) return std::unexpected(decode_error::truncated);
        if (const auto added = add_entry(entry, *its, reply); !added) return std::unexpected(added.error());
    }
    ENSURE(reply.targets.size() == head->count.value(), "each entry has a target");
    return reply;
}

}  // namespace sluice::smb::wire

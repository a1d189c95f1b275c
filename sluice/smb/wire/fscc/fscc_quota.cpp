#include "sluice/smb/wire/fscc/fscc_quota.hpp"

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/fscc/fscc_entry_list.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
// After NextEntryOffset.
struct quota_wire {
    le32 sid_length;   //  0
    le64 change_time;  //  4
    le64 used;         // 12
    le64 threshold;    // 20
    le64 limit;        // 28
};
static_assert(sizeof(quota_wire) == 36 and offsetof(quota_wire, limit) == 28);

struct query_wire {
    le8  returns_one;        //  0
    le8  restarts;           //  1
    le16 reserved;           //  2
    le32 sid_list_length;    //  4
    le32 start_sid_length;   //  8
    le32 start_sid_offset;   // 12  from the end of this structure
};
static_assert(sizeof(query_wire) == 16 and offsetof(query_wire, start_sid_offset) == 12);
// clang-format on

constexpr std::size_t alignment = 8;
constexpr std::size_t sid_entry_alignment = 4;
constexpr std::size_t quota_bytes_min = sizeof(le32) + sizeof(quota_wire);
constexpr std::size_t sid_entry_bytes_min = 2 * sizeof(le32);

[[nodiscard]] decoded<sid> take_sized_sid(byte_reader& reader, std::uint32_t length) noexcept {
    const auto bytes = reader.take_bytes(length);
    if (!bytes) return std::unexpected(decode_error::range_outside_message);
    byte_reader inside(*bytes);
    return take_sid(inside);
}

[[nodiscard]] decoded<quota_information> take_quota(byte_reader& reader) noexcept {
    if (!reader.skip(sizeof(le32))) return std::unexpected(decode_error::truncated);
    const auto wire = reader.take<quota_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    auto user = take_sized_sid(reader, wire->sid_length.value());
    if (!user) return std::unexpected(user.error());
    return quota_information{.change_time = wire->change_time.value(),
                             .used_bytes = wire->used.value(),
                             .threshold_bytes = wire->threshold.value(),
                             .limit_bytes = wire->limit.value(),
                             .user = *std::move(user)};
}

[[nodiscard]] decoded<sid> take_listed_sid(byte_reader& reader) noexcept {
    if (!reader.skip(sizeof(le32))) return std::unexpected(decode_error::truncated);
    const auto length = reader.take<le32>();
    if (!length) return std::unexpected(decode_error::truncated);
    auto user = take_sized_sid(reader, length->value());
    if (!user) return std::unexpected(user.error());
    return *std::move(user);
}

// `take` is as for entry_list_reader::next_as().
template <class Entry, class Take>
[[nodiscard]] decoded<std::vector<Entry>> take_list(bytes_view bytes, std::size_t entry_bytes_min,
                                                    std::size_t entries_max, Take take) noexcept {
    std::vector<Entry> entries;
    entry_list_reader list(bytes, entry_bytes_min);
    for (;;) {
        auto entry = list.next_as(take);
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return entries;
        if (entries.size() == entries_max) return std::unexpected(decode_error::too_many);
        entries.push_back(**std::move(entry));
    }
}

}  // namespace

bytes_view encode_quotas(mutable_bytes room, const std::vector<quota_information>& entries,
                         std::size_t& count) noexcept {
    entry_list_writer list(room, alignment);
    for (const quota_information& each : entries) {
        const entry_outcome outcome = list.put([&](byte_writer& writer) -> decoded<void> {
            writer.put(quota_wire{.sid_length = le32(static_cast<std::uint32_t>(each.user.encoded_bytes())),
                                  .change_time = le64(each.change_time),
                                  .used = le64(each.used_bytes),
                                  .threshold = le64(each.threshold_bytes),
                                  .limit = le64(each.limit_bytes)});
            encode(writer, each.user);
            return {};
        });
        if (outcome != entry_outcome::written) break;
    }
    count = list.count();
    ENSURE(count <= entries.size(), "no entry is written twice");
    return bytes_view(list.bytes());
}

decoded<std::vector<quota_information>> decode_quotas(bytes_view bytes, std::size_t entries_max) noexcept {
    return take_list<quota_information>(bytes, quota_bytes_min, entries_max, take_quota);
}

void encode(byte_writer& writer, const quota_query& query) noexcept {
    ENSURE(query.users.empty() or not query.after, "a query names users, or where to begin");
    std::size_t list_bytes = 0;
    for (const sid& each : query.users)
        list_bytes += sid_entry_bytes_min + each.encoded_bytes();
    const std::size_t start_bytes = query.after ? query.after->encoded_bytes() : 0;
    writer.put(query_wire{.returns_one = le8(query.wants_one),
                          .restarts = le8(query.restarts),
                          .reserved = {},
                          .sid_list_length = le32(static_cast<std::uint32_t>(list_bytes)),
                          .start_sid_length = le32(static_cast<std::uint32_t>(start_bytes)),
                          .start_sid_offset = {}});
    // A SID has a multiple of four bytes, so the entries are aligned.
    for (const sid& each : query.users) {
        const std::size_t bytes = each.encoded_bytes();
        static_assert(sid_entry_bytes_min % sid_entry_alignment == 0);
        const bool is_last = &each == &query.users.back();
        writer.put(le32(is_last ? 0U : static_cast<std::uint32_t>(sid_entry_bytes_min + bytes)));
        writer.put(le32(static_cast<std::uint32_t>(bytes)));
        encode(writer, each);
    }
    if (query.after) encode(writer, *query.after);
}

decoded<quota_query> decode_quota_query(bytes_view bytes, std::size_t users_max) noexcept {
    byte_reader reader(bytes);
    const auto wire = reader.take<query_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    quota_query query{.wants_one = wire->returns_one.value() != 0, .restarts = wire->restarts.value() != 0};
    if (const std::uint32_t length = wire->sid_list_length.value(); length != 0) {
        const auto list = reader.take_bytes(length);
        if (!list) return std::unexpected(decode_error::range_outside_message);
        auto users = take_list<sid>(*list, sid_entry_bytes_min, users_max, take_listed_sid);
        if (!users) return std::unexpected(users.error());
        query.users = *std::move(users);
    } else if (const std::uint32_t start = wire->start_sid_length.value(); start != 0) {
        if (!reader.skip(wire->start_sid_offset.value()))
            return std::unexpected(decode_error::range_outside_message);
        auto after = take_sized_sid(reader, start);
        if (!after) return std::unexpected(after.error());
        query.after = *std::move(after);
    }
    return query;
}

}  // namespace sluice::smb::wire

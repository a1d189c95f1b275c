#include "sluice/smb/server/journal/handle_record.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sluice/smb/server/journal/journal_format.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::uint32_t has_app_instance = 1;
constexpr std::uint32_t has_app_version = 2;
constexpr std::uint32_t has_parent_key = 4;
constexpr std::uint32_t marked_delete_on_close = 8;
constexpr std::uint32_t marked_delete_pending = 16;
constexpr std::uint32_t marked_closed = 32;
constexpr std::uint32_t known_flags = 63;

/// The fixed part of an encoded record, docs/formats/handle_journal.md.
struct fixed_part {
    le64 open_number;                  //   0
    wire::guid create_guid;            //   8
    wire::guid client_guid;            //  24
    wire::guid app_instance;           //  40
    le64 app_version_high;             //  56
    le64 app_version_low;              //  64
    le32 flags;                        //  72
    le32 granted_access;               //  76
    le32 share_access;                 //  80
    le32 options;                      //  84
    le32 disposition;                  //  88
    le32 action;                       //  92
    le32 attributes;                   //  96
    le32 timeout_ms;                   // 100
    le64 device;                       // 104
    le64 inode;                        // 112
    le64 stream_number;                // 120
    le64 zero_1;                       // 128
    le8 caching_kind;                  // 136
    le8 zero;                          // 137
    le16 epoch;                        // 138
    le32 caching_state;                // 140
    wire::lease_key key;               // 144
    wire::lease_key parent_key;        // 160
    std::array<le16, 6> text_lengths;  // 176  path, other path, stream, owner, domain, share
    le16 locks;                        // 188
    le16 zero_2;                       // 190
    std::array<le8, handle_record::sequences> lock_sequences;  // 192
    le64 waits_until_ns;                                       // 256
};
static_assert(sizeof(fixed_part) == 264 and wire_type<fixed_part>);
static_assert(offsetof(fixed_part, granted_access) == 76 and offsetof(fixed_part, device) == 104);
static_assert(offsetof(fixed_part, key) == 144 and offsetof(fixed_part, lock_sequences) == 192);

/// An encoded lock; they follow the texts.
struct lock_part {
    le64 offset;       //  0
    le64 length;       //  8
    le8 is_exclusive;  // 16
};
static_assert(sizeof(lock_part) == 17 and wire_type<lock_part>);

constexpr std::array<std::size_t, 6> text_bytes_max{
    handle_record::path_bytes_max,    handle_record::path_bytes_max,    handle_record::stream_bytes_max,
    handle_record::account_bytes_max, handle_record::account_bytes_max, handle_record::share_bytes_max};

constexpr std::size_t encoded_bytes_max = [] {
    std::size_t sum = sizeof(fixed_part) + handle_record::locks_max * sizeof(lock_part);
    for (const std::size_t each : text_bytes_max)
        sum += each;
    return sum;
}();
static_assert(encoded_bytes_max <= journal_format::content_bytes_max, "every record has a place in a copy");

template <class Record>
auto texts_of(Record& record) noexcept {
    return std::array{&record.path,  &record.other_path, &record.stream,
                      &record.owner, &record.domain,     &record.share};
}

bool is_lockable(const recorded_lock& lock) noexcept {
    return lock.length == 0 or lock.offset <= std::numeric_limits<std::uint64_t>::max() - (lock.length - 1);
}

bool is_possible(const recorded_caching& caching) noexcept {
    constexpr auto all = wire::lease_state::read | wire::lease_state::handle | wire::lease_state::write;
    using enum recorded_caching::kind;
    if (caching.which > lease_v2 or wire::without(caching.state, all) != wire::lease_state::none)
        return false;
    if (caching.which != none) return caching.which == lease_v2 or not caching.parent_key;
    return caching == recorded_caching{};
}

bool is_sequence(std::uint8_t number) noexcept {
    return number < 16 or number == handle_record::no_sequence;
}

}  // namespace

bool handle_record::fits() const noexcept {
    const auto texts = texts_of(*this);
    for (std::size_t i = 0; i != texts.size(); ++i)
        if (texts[i]->size() > text_bytes_max[i]) return false;
    if (open_number == 0 or owner.empty() or share.empty() or (path.empty() and stream.empty())) return false;
    if (file.image != 0 or (app_version and not app_instance)) return false;
    if (disposition > wire::create_disposition::overwrite_if) return false;
    if (action > wire::create_action::overwritten) return false;
    if (waits_until.count() < 0 or timeout.count() < 0 or
        timeout.count() > std::numeric_limits<std::uint32_t>::max())
        return false;
    return is_possible(caching) and locks.size() <= locks_max and std::ranges::all_of(locks, is_lockable) and
           std::ranges::all_of(lock_sequences, is_sequence);
}

bool operator==(const handle_record& a, const handle_record& b) noexcept {
    const auto numbers = [](const handle_record& r) noexcept {
        return std::tie(r.open_number, r.create_guid, r.client_guid, r.app_instance, r.app_version,
                        r.granted_access, r.share_access, r.options, r.disposition, r.action, r.attributes,
                        r.timeout, r.waits_until, r.file, r.caching, r.deletes_on_close, r.is_delete_pending,
                        r.is_closed, r.lock_sequences);
    };
    const auto texts = [](const handle_record& r) noexcept {
        return std::tie(r.owner, r.domain, r.share, r.path, r.other_path, r.stream);
    };
    return numbers(a) == numbers(b) and texts(a) == texts(b) and std::ranges::equal(a.locks, b.locks);
}

namespace {

std::uint32_t flags_of(const handle_record& record) noexcept {
    return (record.app_instance ? has_app_instance : 0) | (record.app_version ? has_app_version : 0) |
           (record.caching.parent_key ? has_parent_key : 0) |
           (record.deletes_on_close ? marked_delete_on_close : 0) |
           (record.is_delete_pending ? marked_delete_pending : 0) | (record.is_closed ? marked_closed : 0);
}

fixed_part fixed_part_of(const handle_record& record) noexcept {
    const wire::app_instance_version version = record.app_version.value_or(wire::app_instance_version{});
    fixed_part fixed{
        .open_number = le64(record.open_number),
        .create_guid = record.create_guid,
        .client_guid = record.client_guid,
        .app_instance = record.app_instance.value_or(wire::guid{}),
        .app_version_high = le64(version.high),
        .app_version_low = le64(version.low),
        .flags = le32(flags_of(record)),
        .granted_access = le32(wire::bits_of(record.granted_access)),
        .share_access = le32(wire::bits_of(record.share_access)),
        .options = le32(wire::bits_of(record.options)),
        .disposition = le32(static_cast<std::uint32_t>(record.disposition)),
        .action = le32(static_cast<std::uint32_t>(record.action)),
        .attributes = le32(wire::bits_of(record.attributes)),
        .timeout_ms = le32(static_cast<std::uint32_t>(record.timeout.count())),
        .device = le64(record.file.volume),
        .inode = le64(record.file.file),
        .stream_number = le64(record.file.stream),
        .zero_1 = {},
        .caching_kind = le8(static_cast<std::uint8_t>(record.caching.which)),
        .zero = {},
        .epoch = le16(record.caching.epoch),
        .caching_state = le32(wire::bits_of(record.caching.state)),
        .key = record.caching.key,
        .parent_key = record.caching.parent_key.value_or(wire::lease_key{}),
        .text_lengths = {},
        .locks = le16(static_cast<std::uint16_t>(record.locks.size())),
        .zero_2 = {},
        .lock_sequences = {},
        .waits_until_ns = le64(static_cast<std::uint64_t>(record.waits_until.count())),
    };
    const auto texts = texts_of(record);
    for (std::size_t i = 0; i != texts.size(); ++i)
        fixed.text_lengths[i] = le16(static_cast<std::uint16_t>(texts[i]->size()));
    for (std::size_t i = 0; i != handle_record::sequences; ++i)
        fixed.lock_sequences[i] = le8(record.lock_sequences[i]);
    return fixed;
}

/// The reverse, without texts and locks. Returns std::nullopt for bytes that no record has.
std::optional<handle_record> record_of(const fixed_part& fixed) noexcept {
    const std::uint32_t flags = fixed.flags.value();
    const auto is_set = [flags](std::uint32_t flag) noexcept { return (flags & flag) != 0; };
    if ((flags & ~known_flags) != 0 or fixed.zero_1.value() != 0 or fixed.zero.value() != 0 or
        fixed.zero_2.value() != 0)
        return std::nullopt;
    handle_record made;
    made.open_number = fixed.open_number.value();
    made.create_guid = fixed.create_guid;
    made.client_guid = fixed.client_guid;
    if (is_set(has_app_instance)) made.app_instance = fixed.app_instance;
    if (is_set(has_app_version))
        made.app_version = {.high = fixed.app_version_high.value(), .low = fixed.app_version_low.value()};
    made.granted_access = static_cast<wire::access_mask>(fixed.granted_access.value());
    made.share_access = static_cast<wire::share_access>(fixed.share_access.value());
    made.options = static_cast<wire::create_options>(fixed.options.value());
    made.disposition = static_cast<wire::create_disposition>(fixed.disposition.value());
    made.action = static_cast<wire::create_action>(fixed.action.value());
    made.attributes = static_cast<wire::file_attributes>(fixed.attributes.value());
    made.timeout = std::chrono::milliseconds(fixed.timeout_ms.value());
    made.file = {.image = 0,
                 .volume = fixed.device.value(),
                 .file = fixed.inode.value(),
                 .stream = fixed.stream_number.value()};
    made.caching = {.which = static_cast<recorded_caching::kind>(fixed.caching_kind.value()),
                    .state = static_cast<wire::lease_state>(fixed.caching_state.value()),
                    .epoch = fixed.epoch.value(),
                    .key = fixed.key};
    if (is_set(has_parent_key)) made.caching.parent_key = fixed.parent_key;
    made.deletes_on_close = is_set(marked_delete_on_close);
    made.is_delete_pending = is_set(marked_delete_pending);
    made.is_closed = is_set(marked_closed);
    made.waits_until = std::chrono::nanoseconds(static_cast<std::int64_t>(fixed.waits_until_ns.value()));
    for (std::size_t i = 0; i != handle_record::sequences; ++i)
        made.lock_sequences[i] = fixed.lock_sequences[i].value();
    return made;
}

bool take_texts(byte_reader& reader, const fixed_part& fixed, handle_record& record) noexcept {
    const auto texts = texts_of(record);
    for (std::size_t i = 0; i != texts.size(); ++i) {
        const auto text = reader.take_bytes(fixed.text_lengths[i].value());
        if (not text) return false;
        *texts[i] = {reinterpret_cast<const char*>(text->data()), text->size()};
    }
    return true;
}

bool take_locks(byte_reader& reader, std::size_t count, std::vector<recorded_lock>& locks) {
    locks.clear();
    if (count > handle_record::locks_max or reader.remaining() != count * sizeof(lock_part)) return false;
    locks.reserve(count);
    while (const auto part = reader.take<lock_part>()) {
        if (part->is_exclusive.value() > 1) return false;
        locks.push_back({.offset = part->offset.value(),
                         .length = part->length.value(),
                         .is_exclusive = part->is_exclusive.value() == 1});
    }
    ENSURE(locks.size() == count, "the number of bytes was checked");
    return true;
}

}  // namespace

void encode(byte_writer& writer, const handle_record& record) noexcept {
    ENSURE(record.fits());
    const std::size_t begin = writer.position();
    writer.put(fixed_part_of(record));
    for (const std::string_view* text : texts_of(record))
        writer.put_bytes({reinterpret_cast<const std::byte*>(text->data()), text->size()});
    for (const recorded_lock& lock : record.locks)
        writer.put(lock_part{.offset = le64(lock.offset),
                             .length = le64(lock.length),
                             .is_exclusive = le8(lock.is_exclusive ? 1 : 0)});
    ENSURE(writer.position() - begin <= encoded_bytes_max);
}

std::optional<handle_record> decode_handle_record(bytes_view content, std::vector<recorded_lock>& locks) {
    byte_reader reader(content);
    const auto fixed = reader.take<fixed_part>();
    if (not fixed) return std::nullopt;
    auto record = record_of(*fixed);
    if (not record or not take_texts(reader, *fixed, *record)) return std::nullopt;
    if (not take_locks(reader, fixed->locks.value(), locks)) return std::nullopt;
    record->locks = locks;
    // Bytes of absent values are zero, so that one record has one form.
    if (not record->fits()) return std::nullopt;
    const fixed_part again = fixed_part_of(*record);
    if (bytes_of(*fixed) != bytes_of(again)) return std::nullopt;
    return record;
}

}  // namespace sluice::smb::server

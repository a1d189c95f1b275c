#include "sluice/fsmutex/queue/queue_format.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sluice/fsmutex/queue/sip_hash.hpp"

namespace sluice::fsmutex::queue_format {
namespace {

constexpr unsigned count_shift = 56;
constexpr std::uint64_t when_mask = (std::uint64_t{1} << count_shift) - 1;
constexpr std::uint64_t count_mask = 0x0f;
constexpr std::uint64_t continued_flag = 0x80;
constexpr std::uint64_t continuation_flag = 0x40;
constexpr std::size_t header_hash_bytes = 16;
constexpr std::size_t slot_hash_bytes = 8;

bool has_hash_of(const header_record& record, bytes_view covered) noexcept {
    const auto expected = sip_hash_128(covered);
    return record.hash[0].value() == expected[0] and record.hash[1].value() == expected[1];
}
le64 slot_hash_of(bytes_view slot) noexcept {
    return le64(sip_hash_128(*slot.from(slot_hash_bytes))[0]);
}

}  // namespace

bool is_zero(bytes_view bytes) noexcept {
    static constexpr std::array<std::byte, page_bytes> zeros{};
    return bytes.size() <= zeros.size() and std::memcmp(bytes.data(), zeros.data(), bytes.size()) == 0;
}

namespace {

// Offsets of pages, ascending, and before the first page that every scan reads.
bool is_valid(const header& read) noexcept {
    std::uint64_t least = page_bytes;
    for (const std::uint64_t page : read.live_pages) {
        if (page < least or page % page_bytes != 0 or page >= read.first_known_good) return false;
        least = page + page_bytes;
    }
    return read.first_known_good % page_bytes == 0 and read.first_known_good >= page_bytes and
           read.first_after_hole_punch % page_bytes == 0 and
           read.first_after_hole_punch <= read.first_known_good and read.first_known_good >> 61 == 0 and
           read.ring_pages <= ring_pages_max;
}

bool are_ascending(std::span<const entity> all) noexcept {
    return std::adjacent_find(all.begin(), all.end(),
                              [](entity a, entity b) { return a.number() >= b.number(); }) == all.end();
}

}  // namespace

std::optional<header> decode_header(bytes_view page) {
    const auto record = page.take<header_record>();
    if (not record or record->version.value() != version_3) return std::nullopt;
    const std::size_t count = record->live_page_count.value();
    const auto covered = count <= live_pages_max
                             ? page.slice({.offset = header_hash_bytes,
                                           .length = header_bytes - header_hash_bytes + 8 * count})
                             : std::nullopt;
    if (not covered or not has_hash_of(*record, *covered)) return std::nullopt;
    header read{.generation = record->generation.value(),
                .created_s = record->created_s.value(),
                .first_known_good = record->first_known_good.value(),
                .first_after_hole_punch = record->first_after_hole_punch.value(),
                .ring_pages = record->ring_pages.value(),
                .live_pages = {}};
    read.live_pages.reserve(count);
    for (std::size_t i = 0; i != count; ++i)
        read.live_pages.push_back(page.take_at<le64>(header_bytes + 8 * i)->value());
    if (not is_valid(read)) return std::nullopt;
    return read;
}

std::size_t encode(const header& from, std::array<std::byte, page_bytes>& page) noexcept {
    ENSURE(from.live_pages.size() <= live_pages_max);
    page.fill(std::byte{});
    for (std::size_t i = 0; i != from.live_pages.size(); ++i) {
        const le64 offset(from.live_pages[i]);
        std::memcpy(page.data() + header_bytes + 8 * i, &offset, sizeof offset);
    }
    header_record record{};
    record.generation = le64(from.generation);
    record.created_s = le64(from.created_s);
    record.first_known_good = le64(from.first_known_good);
    record.first_after_hole_punch = le64(from.first_after_hole_punch);
    record.version = le64(version_3);
    record.live_page_count = le32(static_cast<std::uint32_t>(from.live_pages.size()));
    record.ring_pages = le32(from.ring_pages);
    std::memcpy(page.data(), &record, sizeof record);
    const std::size_t size = header_bytes + 8 * from.live_pages.size();
    const auto hash = sip_hash_128({page.data() + header_hash_bytes, size - header_hash_bytes});
    record.hash[0] = le64(hash[0]);
    record.hash[1] = le64(hash[1]);
    std::memcpy(page.data(), &record, sizeof record);
    return size;
}

std::string_view slot::host_name() const noexcept {
    return {host.data(), static_cast<std::size_t>(std::find(host.begin(), host.end(), '\0') - host.begin())};
}

slot decode_slot(bytes_view bytes) noexcept {
    static constexpr slot torn{.kind = slot_kind::torn};
    const auto record = bytes.take<slot_record>();
    if (not record) return torn;
    const auto first = bytes.first(slot_bytes).value();
    if (record->hash.value() == 0 and is_zero(first)) return {};
    if (record->hash.value() != slot_hash_of(first).value()) return torn;
    const std::uint64_t flags = record->when_and_count.value() >> count_shift;
    slot read;
    const bool is_continuation = (flags & continuation_flag) != 0;
    read.count = static_cast<std::uint8_t>(flags & count_mask);
    read.is_continued = (flags & continued_flag) != 0;
    read.place = record->place.value();
    read.id = record->id.value();
    read.when_us = record->when_and_count.value() & when_mask;
    if (read.count == 0 or read.count > (is_continuation ? continuation_entities_max : head_entities_max) or
        (flags & ~(count_mask | continued_flag | continuation_flag)) != 0)
        return torn;
    for (std::size_t i = 0; i != read.count; ++i)
        read.all[i] =
            entity::from_bits((i < 9 ? record->entities[i] : record->owner_or_entity[i - 9]).value());
    if (not are_ascending(read.entities())) return torn;
    if (not is_continuation) {
        const auto owner = std::bit_cast<std::array<char, 24>>(record->owner_or_entity);
        le32 id;
        std::memcpy(&id, owner.data(), sizeof id);
        read.process_id = id.value();
        std::copy(owner.begin() + sizeof id, owner.end(), read.host.begin());
    }
    read.kind = is_continuation ? slot_kind::continuation : slot_kind::head;
    return read;
}

void encode(const slot& from, std::span<std::byte, slot_bytes> bytes) noexcept {
    ENSURE(from.kind != slot_kind::torn);
    slot_record record{};
    if (from.is_live()) {
        const bool is_continuation = from.kind == slot_kind::continuation;
        const std::uint64_t flags =
            from.count | (from.is_continued ? continued_flag : 0) | (is_continuation ? continuation_flag : 0);
        record.place = le64(from.place);
        record.id = le64(from.id);
        record.when_and_count = le64((from.when_us & when_mask) | flags << count_shift);
        if (not is_continuation) {
            const le32 id(from.process_id);
            std::memcpy(record.owner_or_entity, &id, sizeof id);
            std::memcpy(reinterpret_cast<char*>(record.owner_or_entity) + sizeof id, from.host.data(),
                        host_bytes);
        }
        for (std::size_t i = 0; i != from.count; ++i)
            (i < 9 ? record.entities[i] : record.owner_or_entity[i - 9]) = le64(from.all[i].bits());
        record.hash = slot_hash_of(bytes_of(record));
    }
    std::memcpy(bytes.data(), &record, sizeof record);
}

void set_place(std::span<std::byte, slot_bytes> bytes, std::uint64_t place) noexcept {
    const le64 where(place);
    std::memcpy(bytes.data() + offsetof(slot_record, place), &where, sizeof where);
    const le64 hash = slot_hash_of(bytes);
    std::memcpy(bytes.data() + offsetof(slot_record, hash), &hash, sizeof hash);
}

slot slot_of(const slot& head, std::span<const entity> wanted, std::size_t index) noexcept {
    slot made = head;
    const std::size_t first = index == 0 ? 0 : head_entities_max + (index - 1) * continuation_entities_max;
    const std::size_t room = index == 0 ? head_entities_max : continuation_entities_max;
    const std::size_t count = std::min(room, wanted.size() - first);
    made.kind = index == 0 ? slot_kind::head : slot_kind::continuation;
    made.is_continued = first + count != wanted.size();
    made.count = static_cast<std::uint8_t>(count);
    std::copy_n(wanted.begin() + static_cast<std::ptrdiff_t>(first), count, made.all.begin());
    if (index != 0) {
        made.process_id = 0;
        made.host = {};
    }
    return made;
}

}  // namespace sluice::fsmutex::queue_format

#include "sluice/fat/device/journal_device.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/crc32.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t copy_bytes = 256U << 10;  // at a time; fits the cache of a CPU
constexpr std::uint64_t alignment = 8;            // of records

// If more than a quarter is in use, the end of a batch copies everything to the volume, so that the
// next one has room. If more than half is in use, a batch should end soon.
constexpr std::uint64_t copied_beyond(std::uint64_t size) noexcept {
    return size / 4;
}
constexpr std::uint64_t wanted_beyond(std::uint64_t size) noexcept {
    return size / 2;
}

std::uint64_t aligned(std::uint64_t offset) noexcept {
    return (offset + alignment - 1) / alignment * alignment;
}

result<std::uint32_t> fingerprint_of_volume(device& volume, std::optional<std::uint64_t> mark) noexcept {
    ENSURE(not mark or *mark < 512, "the mark is in the boot sector");
    std::array<std::byte, 512> start{};
    if (const auto read = volume.read_at(0, start); not read) return failure(read.error());
    if (mark) start[static_cast<std::size_t>(*mark)] = std::byte{};
    return crc32(bytes_view(start.data(), start.size()));
}

result<void> write_header(device& log, const journal_binding& binding) noexcept {
    const journal_header raw = encode(binding);
    const auto done = log.write_at(0, std::as_bytes(std::span(&raw, 1)));
    return done ? log.barrier() : done;
}

}  // namespace

result<void> journal_device::format(device& volume, device& log, const place& where, bool was_clean,
                                    const std::array<std::byte, 16>& id) noexcept {
    const auto fingerprint = fingerprint_of_volume(volume, where.dirty_mark);
    if (not fingerprint) return failure(fingerprint.error());
    return write_header(log, {.volume = where.in_image,
                              .was_clean = was_clean,
                              .generation = 1,
                              .id = id,
                              .fingerprint = *fingerprint});
}

std::expected<std::unique_ptr<journal_device>, std::string> journal_device::open(device& volume, device& log,
                                                                                 const place& where,
                                                                                 bool is_read_only) {
    journal_header raw{};
    if (log.size_bytes() < journal_bytes_min) return std::unexpected("not a journal");
    if (const auto read = log.read_at(0, std::as_writable_bytes(std::span(&raw, 1))); not read)
        return std::unexpected(read.error().reason());
    const auto binding = decode(raw);
    if (not binding) return std::unexpected(binding.error());
    const auto fingerprint = fingerprint_of_volume(volume, where.dirty_mark);
    if (not fingerprint) return std::unexpected(fingerprint.error().reason());
    if (binding->volume.offset != where.in_image.offset or binding->volume.length != where.in_image.length or
        binding->fingerprint != *fingerprint)
        return std::unexpected("belongs to another volume");
    std::unique_ptr<journal_device> made(new journal_device(volume, log, where, *binding, is_read_only));
    const auto marked = made->is_marked();
    if (not marked) return std::unexpected(marked.error().reason());
    made->has_mark_ = *marked;
    if (const auto loaded = made->load(); not loaded) return std::unexpected(loaded.error());
    return made;
}

// Returns the record at `place` of the journal, if it is valid. The payload of a write is checked
// as well.
std::optional<journal_record> journal_device::valid_record_at(std::uint64_t place,
                                                              std::vector<std::byte>& room) noexcept {
    journal_record record{};
    if (place > log_.size_bytes() or log_.size_bytes() - place < sizeof record) return std::nullopt;
    if (not log_.read_at(place, std::as_writable_bytes(std::span(&record, 1)))) return std::nullopt;
    if (record.checksum.value() != checksum_of(binding_, record, place) or
        record.generation.value() != binding_.generation)
        return std::nullopt;
    const std::uint64_t offset = record.offset.value();
    const std::uint64_t length = record.length.value();
    const auto kind = static_cast<journal_kind>(record.kind.value());
    if (kind == journal_kind::end) return record;
    if (offset > size_bytes() or length > size_bytes() - offset or length == 0) return std::nullopt;
    if (kind == journal_kind::hole) return record;
    if (kind != journal_kind::write) return std::nullopt;
    place += sizeof record;
    if (length > log_.size_bytes() - place) return std::nullopt;
    std::uint32_t sum = 0;
    for (std::uint64_t done = 0; done < length;) {
        const auto part = std::span(room).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), length - done)));
        if (not log_.read_at(place + done, part)) return std::nullopt;
        sum = crc32(bytes_view(part.data(), part.size()), sum);
        done += part.size();
    }
    return sum == record.payload_checksum.value() ? std::optional(record) : std::nullopt;
}

// Loads all records up to the last end of a batch. Later records were never reported as durable.
std::expected<void, std::string> journal_device::load() {
    std::vector<std::byte> room(copy_bytes);
    ENSURE(map_.empty() and records_ == 0 and batches_ == 0, "a journal is loaded once");
    std::vector<change> batch;
    std::uint64_t place = journal_records_offset;
    while (records_ < journal_records_max) {
        const auto record = valid_record_at(place, room);
        if (not record) break;
        ++records_;
        const auto kind = static_cast<journal_kind>(record->kind.value());
        place += sizeof *record;
        if (kind == journal_kind::end) {
            if (record->length.value() != batch.size()) break;
            for (const change& each : batch)
                put(each);
            batch.clear();
            ++batches_;
            end_ = place;
            continue;
        }
        const bool is_hole = kind == journal_kind::hole;
        batch.push_back({.offset = record->offset.value(),
                         .what = {.length = record->length.value(), .place = is_hole ? 0 : place}});
        if (not is_hole) place = aligned(place + record->length.value());
    }
    ENSURE(end_ <= log_.size_bytes() and batches_ <= records_, "the records lie in the journal");
    if (batches_ != 0 and where_.dirty_mark and not has_mark_)
        return std::unexpected(
            "has batches that are not in the volume, but the volume is marked clean: another program has "
            "modified it since; remove the journal if the volume is correct as it is");
    return {};
}

std::uint32_t journal_device::pending_batches() const noexcept {
    const std::shared_lock guard(mutex_);
    return batches_;
}

std::uint32_t journal_device::split_batches() const noexcept {
    const std::shared_lock guard(mutex_);
    return splits_;
}

result<bool> journal_device::is_marked() noexcept {
    if (not where_.dirty_mark) return false;
    std::array<std::byte, 1> state{};
    if (const auto read = volume_.read_at(*where_.dirty_mark, state); not read) return failure(read.error());
    return (state[0] & std::byte{1}) != std::byte{};
}

// Cuts the overlapping parts of older pieces and inserts the newer piece.
void journal_device::put(const change& what) {
    const std::uint64_t end = what.offset + what.what.length;
    ENSURE(what.what.length != 0 and end > what.offset and end <= size_bytes(), "a piece of the volume");
    const auto part_of = [](const piece& of, std::uint64_t skipped, std::uint64_t length) {
        return piece{.length = length, .place = of.place == 0 ? 0 : of.place + skipped};
    };
    auto at = map_.lower_bound(what.offset);
    if (at != map_.begin()) {
        const auto before = std::prev(at);
        const piece old = before->second;
        const std::uint64_t old_end = before->first + old.length;
        if (old_end > what.offset) before->second.length = what.offset - before->first;
        if (old_end > end) map_.emplace(end, part_of(old, end - before->first, old_end - end));
    }
    for (at = map_.lower_bound(what.offset); at != map_.end() and at->first < end;) {
        const std::uint64_t old_end = at->first + at->second.length;
        if (old_end > end) map_.emplace(end, part_of(at->second, end - at->first, old_end - end));
        at = map_.erase(at);
    }
    const auto fresh = map_.emplace(what.offset, what.what).first;
    const auto next = std::next(fresh);
    ENSURE(fresh->second.length == what.what.length and (next == map_.end() or next->first >= end),
           "pieces do not overlap");
}

// Returns the range from `offset` on that is stored contiguously in one device, at most `most`
// bytes.
journal_device::segment journal_device::segment_at(std::uint64_t offset, std::uint64_t most) const noexcept {
    ENSURE(most != 0, "the transfer is not empty");
    const auto next = map_.upper_bound(offset);
    if (next != map_.begin()) {
        const auto& [first, what] = *std::prev(next);
        if (const std::uint64_t skipped = offset - first; skipped < what.length)
            return {.length = std::min(most, what.length - skipped),
                    .from = what.place == 0 ? source::nowhere : source::log,
                    .place = what.place + skipped};
    }
    const std::uint64_t length = next == map_.end() ? most : std::min(most, next->first - offset);
    return {.length = length, .from = source::volume, .place = offset};
}

result<void> journal_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    if (const auto inside = check_inside({offset, bytes_in(pieces)}, "read past the end of the volume");
        not inside)
        return inside;
    const std::shared_lock guard(mutex_);
    for (const io::buffer& each : pieces) {
        for (std::span<std::byte> left = each.bytes(); not left.empty();) {
            const segment here = segment_at(offset, left.size());
            const auto part = left.first(static_cast<std::size_t>(here.length));
            if (here.from == source::nowhere)
                std::ranges::fill(part, std::byte{});
            else if (const auto done = device_of(here).read_at(here.place, part); not done)
                return done;
            left = left.subspan(part.size());
            offset += part.size();
        }
    }
    return {};
}

// A writer holds the mutex for the whole transfer, including the copying and the barriers of a
// checkpoint.
result<bool> journal_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    if (const auto inside = check_inside({offset, into.size()}, "read past the end of the volume");
        not inside)
        return failure(inside.error());
    const std::shared_lock guard(mutex_, std::try_to_lock);
    if (not guard) return false;
    while (not into.empty()) {
        const segment here = segment_at(offset, into.size());
        const auto part = into.first(static_cast<std::size_t>(here.length));
        if (here.from == source::nowhere) {
            std::ranges::fill(part, std::byte{});
        } else {
            const auto got = device_of(here).try_read_at(here.place, part);
            if (not got or not*got) return got;
        }
        into = into.subspan(part.size());
        offset += part.size();
    }
    return true;
}

// Returns whether `bytes` fit together with the record of the end of the batch.
bool journal_device::has_room(std::uint64_t bytes) const noexcept {
    ENSURE(end_ <= log_.size_bytes(), "the records lie in the journal");
    return records_ + 2 <= journal_records_max and
           bytes + 2 * sizeof(journal_record) + alignment <= log_.size_bytes() - end_;
}

result<void> journal_device::make_room(std::uint64_t bytes) noexcept {
    if (generation_is_due_)
        if (const auto done = begin_generation(); not done) return done;
    if (has_room(bytes)) return {};
    if (in_batch_ != 0) ++splits_;
    if (const auto done = end_locked(); not done) return done;
    if (const auto done = checkpoint(); not done) return done;
    ENSURE(has_room(bytes), "a piece fits an empty journal");
    return {};
}

result<void> journal_device::append(journal_record record, io::const_buffers_type payload) noexcept {
    ENSURE(not generation_is_due_, "a header is durable before the first record of its generation");
    ENSURE(end_ % alignment == 0 and records_ < journal_records_max, "the journal has space for the record");
    std::uint32_t sum = 0;
    for (const io::const_buffer& each : payload)
        sum = crc32(bytes_view(each.data(), each.size()), sum);
    record.payload_checksum = le32(sum);
    record.generation = le64(binding_.generation);
    record.checksum = le32(checksum_of(binding_, record, end_));
    std::vector<io::const_buffer> pieces{
        io::const_buffer(reinterpret_cast<const std::byte*>(&record), sizeof record)};
    pieces.insert(pieces.end(), payload.begin(), payload.end());
    const std::uint64_t bytes = bytes_in(io::const_buffers_type(pieces));
    if (const auto done = log_.write_at(end_, io::const_buffers_type(pieces)); not done) return done;
    end_ = aligned(end_ + bytes);
    ++records_;
    return {};
}

result<void> journal_device::write_record(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    const std::uint64_t length = bytes_in(pieces);
    if (length == 0) return {};
    if (const auto room = make_room(length); not room) return room;
    const std::uint64_t place = end_ + sizeof(journal_record);
    ENSURE(length <= log_.size_bytes() - place, "the journal has space for the payload");
    const journal_record record{.kind = le32(static_cast<std::uint32_t>(journal_kind::write)),
                                .payload_checksum = {},
                                .offset = le64(offset),
                                .length = le64(length),
                                .generation = {},
                                .checksum = {},
                                .zero = {}};
    if (const auto done = append(record, pieces); not done) return done;
    ++in_batch_;
    put({.offset = offset, .what = {.length = length, .place = place}});
    return {};
}

result<void> journal_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    if (is_read_only_) return failure({EBADF, "write to a volume opened for reading"});
    const std::uint64_t length = bytes_in(pieces);
    if (const auto inside = check_inside({offset, length}, "write past the end of the volume"); not inside)
        return inside;
    const std::unique_lock guard(mutex_);
    const std::uint64_t most = (log_.size_bytes() - journal_records_offset) / 2;
    ENSURE(most != 0, "the journal has space for records");
    if (length <= most) return write_record(offset, pieces);
    for (const io::const_buffer& each : pieces) {
        for (auto left = each.bytes(); not left.empty();) {
            io::const_buffer part(
                left.first(static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), most))));
            if (const auto done = write_record(offset, io::const_buffers_type(&part, 1)); not done)
                return done;
            left = left.subspan(part.size());
            offset += part.size();
        }
    }
    return {};
}

result<void> journal_device::punch_hole(byte_extent range) noexcept {
    if (is_read_only_) return failure({EBADF, "write to a volume opened for reading"});
    if (const auto inside = check_inside(range, "hole past the end of the volume"); not inside) return inside;
    if (range.length == 0) return {};
    const std::unique_lock guard(mutex_);
    if (const auto room = make_room(0); not room) return room;
    const journal_record record{.kind = le32(static_cast<std::uint32_t>(journal_kind::hole)),
                                .payload_checksum = {},
                                .offset = le64(range.offset),
                                .length = le64(range.length),
                                .generation = {},
                                .checksum = {},
                                .zero = {}};
    if (const auto done = append(record, {}); not done) return done;
    ++in_batch_;
    put({.offset = range.offset, .what = {.length = range.length, .place = 0}});
    return {};
}

result<void> journal_device::write_mark(bool is_dirty) noexcept {
    ENSURE(not is_read_only_ and is_dirty != has_mark_);
    ENSURE(is_dirty or batches_ == 0, "the volume is marked while something counts in the journal");
    std::array<std::byte, 1> state{};
    if (const auto read = volume_.read_at(*where_.dirty_mark, state); not read) return read;
    state[0] = is_dirty ? state[0] | std::byte{1} : state[0] & ~std::byte{1};
    auto done = volume_.write_at(*where_.dirty_mark, std::span<const std::byte>(state));
    if (done) done = volume_.barrier();
    if (done) has_mark_ = is_dirty;
    return done;
}

// Returns whether the dirty mark will be set, as far as the journal determines it.
bool journal_device::is_mark_set_in_map() noexcept {
    auto next = map_.upper_bound(*where_.dirty_mark);
    if (next == map_.begin()) return true;
    const auto& [offset, what] = *--next;
    if (what.place == 0 or *where_.dirty_mark - offset >= what.length) return true;
    std::array<std::byte, 1> state{};
    return not log_.read_at(what.place + (*where_.dirty_mark - offset), state) or
           (state[0] & std::byte{1}) != std::byte{};
}

result<void> journal_device::end_locked() noexcept {
    if (in_batch_ != 0) {
        if (where_.dirty_mark and not has_mark_)  // before the first batch counts
            if (const auto done = write_mark(true); not done) return done;
        ENSURE(in_batch_ <= records_, "the records of a batch are counted");
        const journal_record record{.kind = le32(static_cast<std::uint32_t>(journal_kind::end)),
                                    .payload_checksum = {},
                                    .offset = {},
                                    .length = le64(in_batch_),
                                    .generation = {},
                                    .checksum = {},
                                    .zero = {}};
        if (const auto done = append(record, {}); not done) return done;
        in_batch_ = 0;
        ++batches_;
        ENSURE(batches_ <= records_, "each batch has a record of its end");
        is_durable_ = false;
    }
    if (is_durable_) return {};
    const auto done = log_.barrier();
    is_durable_ = done.has_value();
    return done;
}

result<void> journal_device::end_batch() noexcept {
    if (is_read_only_) return {};
    const std::unique_lock guard(mutex_);
    if (const auto done = end_locked(); not done) return done;
    const bool is_full = end_ > copied_beyond(log_.size_bytes()) or
                         records_ > copied_beyond(std::uint64_t{journal_records_max});
    return is_full ? checkpoint() : result<void>();
}

bool journal_device::wants_batch_end() noexcept {
    const std::shared_lock guard(mutex_);
    return end_ > wanted_beyond(log_.size_bytes()) or
           records_ > wanted_beyond(std::uint64_t{journal_records_max});
}

result<void> journal_device::recover() noexcept {
    ENSURE(not is_read_only_);
    const std::unique_lock guard(mutex_);
    if (in_batch_ != 0) return failure({EBUSY, "carry out a journal"});
    if (const auto done = end_locked(); not done) return done;
    return checkpoint();
}

// Copies the pieces in ascending order; adjacent pieces are written together.
result<void> journal_device::copy_out() noexcept {
    std::vector<std::byte> room(copy_bytes);
    std::uint64_t first = 0;  // destination of the buffer
    std::size_t used = 0;     // bytes of it
    const auto flush = [&] {
        // The mark is written last: see checkpoint().
        if (where_.dirty_mark and *where_.dirty_mark >= first and *where_.dirty_mark - first < used)
            room[static_cast<std::size_t>(*where_.dirty_mark - first)] |= std::byte{1};
        const auto full = std::span<const std::byte>(room).first(std::exchange(used, 0));
        return full.empty() ? result<void>() : volume_.write_at(first, full);
    };
    for (const auto& [offset, what] : map_) {
        if (what.place == 0) {
            if (const auto done = flush(); not done) return done;
            if (const auto done = volume_.punch_hole({offset, what.length}); not done) return done;
            continue;
        }
        for (std::uint64_t done = 0; done < what.length;) {
            if (first + used != offset + done or used == room.size())
                if (const auto flushed = flush(); not flushed) return flushed;
            if (used == 0) first = offset + done;
            const auto part = std::span(room).subspan(used).first(
                static_cast<std::size_t>(std::min<std::uint64_t>(room.size() - used, what.length - done)));
            if (const auto read = log_.read_at(what.place + done, part); not read) return read;
            used += part.size();
            done += part.size();
        }
    }
    return flush();
}

// Copies the durable journal, completely, to the volume. The volume is marked dirty as long as any
// record in the journal counts. So the mark is cleared, if at all, only when no record counts any
// more.
result<void> journal_device::checkpoint() noexcept {
    ENSURE(in_batch_ == 0 and is_durable_);
    if (generation_is_due_) return begin_generation();
    if (const auto done = copy_out(); not done) return done;
    if (const auto done = volume_.barrier(); not done) return done;
    const bool is_to_be_clean = where_.dirty_mark and has_mark_ and not is_mark_set_in_map();
    map_.clear();
    end_ = journal_records_offset;
    records_ = 0;
    batches_ = 0;
    generation_is_due_ = true;
    if (const auto done = begin_generation(); not done) return done;
    return is_to_be_clean ? write_mark(false) : result<void>();
}

// No record may be added before the header is durable: records of two generations would follow each
// other.
result<void> journal_device::begin_generation() noexcept {
    journal_binding next = binding_;
    ENSURE(map_.empty() and records_ == 0 and end_ == journal_records_offset, "a generation begins empty");
    ++next.generation;
    if (const auto done = write_header(log_, next); not done) return done;
    binding_ = next;
    generation_is_due_ = false;
    return {};
}

}  // namespace sluice::fat

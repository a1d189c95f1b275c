#include "sluice/fat/check/undo_recorder.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/crc32.hpp"

namespace sluice::fat {

result<std::unique_ptr<undo_recorder>> undo_recorder::begin(device& volume, device& log,
                                                            undo_binding binding) {
    const auto fingerprint = volume_fingerprint(volume, binding.fingerprint_bytes);
    if (not fingerprint) return failure(fingerprint.error());
    binding.state = undo_state::recording;
    binding.before = *fingerprint;
    std::unique_ptr<undo_recorder> made(new undo_recorder(volume, log, binding));
    if (const auto done = made->write_header(); not done) return failure(done.error());
    return made;
}

result<void> undo_recorder::write_header() {
    const undo_header raw = encode(binding_);
    if (const auto done = log_.write_at(0, bytes_of(raw).span()); not done) return done;
    return log_.barrier(io::barrier_kind::wait_all);
}

result<void> undo_recorder::finish(std::int64_t image_modified) {
    ENSURE(binding_.state == undo_state::recording, "a record ends once");
    if (const auto done = volume_.barrier(); not done) return done;
    const auto fingerprint = volume_fingerprint(volume_, binding_.fingerprint_bytes);
    if (not fingerprint) return failure(fingerprint.error());
    std::vector<std::byte> room(undo_record_bytes_max);
    std::uint32_t sum = 0;
    std::uint64_t records_end = undo_records_offset;
    for (const byte_extent& each : ranges_) {
        ENSURE(each.length <= room.size(), "a record has a greatest length");
        const auto piece = std::span(room).first(each.length);
        if (const auto done = volume_.read_at(each.offset, piece); not done) return done;
        sum = crc32(bytes_view(piece.data(), piece.size()), sum);
        records_end += sizeof(undo_record) + each.length;
    }
    ENSURE(records_end == end_, "the records follow each other");
    binding_.state = undo_state::complete;
    binding_.after = *fingerprint;
    binding_.changed = sum;
    binding_.log_bytes = end_;
    binding_.image_modified = image_modified;
    return write_header();
}

result<void> undo_recorder::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    if (const auto done = record({.offset = offset, .length = bytes_in(pieces)}); not done) return done;
    return volume_.write_at(offset, pieces);
}

result<void> undo_recorder::punch_hole(byte_extent range) noexcept {
    if (const auto done = record(range); not done) return done;
    return volume_.punch_hole(range);
}

// Invariants 1 and 2.
result<void> undo_recorder::record(byte_extent range) {
    if (range.length == 0) return {};
    if (const auto inside = check_inside(range, "write past the end of the volume"); not inside)
        return inside;
    const std::uint64_t last = (range.offset + range.length - 1) / undo_block_bytes;
    ENSURE(last < is_recorded_.size(), "each block of the volume has its mark");
    std::uint64_t block = range.offset / undo_block_bytes;
    while (block <= last) {
        if (is_recorded_[block]) {
            ++block;
            continue;
        }
        const std::uint64_t first = block;
        while (block <= last and not is_recorded_[block] and
               (block - first + 1) * undo_block_bytes <= undo_record_bytes_max)
            ++block;
        const std::uint64_t start = first * undo_block_bytes;
        const std::uint64_t end = std::min(block * undo_block_bytes, size_bytes());
        if (const auto done = append({.offset = start, .length = end - start}); not done) return done;
        std::fill(is_recorded_.begin() + static_cast<std::ptrdiff_t>(first),
                  is_recorded_.begin() + static_cast<std::ptrdiff_t>(block), true);
    }
    return {};
}

result<void> undo_recorder::append(byte_extent range) {
    ENSURE(binding_.state == undo_state::recording, "nothing changes after the end of the record");
    ENSURE(range.length != 0 and range.length <= undo_record_bytes_max and
           range.offset % undo_block_bytes == 0);
    std::vector<std::byte> bytes(range.length);
    if (const auto done = volume_.read_at(range.offset, std::span(bytes)); not done) return done;
    undo_record record{.offset = le64(range.offset),
                       .length = le32(static_cast<std::uint32_t>(range.length)),
                       .checksum = {}};
    record.checksum = le32(checksum_of(binding_, end_, record, bytes_view(bytes.data(), bytes.size())));
    if (const auto done = log_.write_at(end_, bytes_of(record).span()); not done) return done;
    const auto content = std::span<const std::byte>(bytes);
    if (const auto done = log_.write_at(end_ + sizeof record, content); not done) return done;
    if (const auto done = log_.barrier(); not done) return done;
    end_ += sizeof record + range.length;
    ranges_.push_back(range);
    ENSURE(ranges_.size() <= is_recorded_.size(), "each block is recorded once");
    return {};
}

}  // namespace sluice::fat

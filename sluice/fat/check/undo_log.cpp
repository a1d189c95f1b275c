#include "sluice/fat/check/undo_log.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/device/partition_device.hpp"

namespace sluice::fat {
namespace {

constexpr const char* damaged = "damaged: a record has a wrong checksum or length";

}  // namespace

/// The volume with the original bytes in the place of the recorded ranges. Read only.
class undo_log::original_view final : public device {
public:
    original_view(device& volume, const undo_log& log) : volume_(volume), log_(log), sorted_(log.entries_) {
        std::ranges::sort(sorted_, {}, [](const entry& each) { return each.range.offset; });
    }
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return volume_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return false; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        for (const io::buffer& each : pieces) {
            if (const auto done = read_piece(offset, each.bytes()); not done) return done;
            offset += each.size();
        }
        return {};
    }
    [[nodiscard]] result<void> write_at(std::uint64_t, io::const_buffers_type) noexcept override {
        return failure({EBADF, "write to the original content of a volume"});
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind) noexcept override { return {}; }
    [[nodiscard]] result<void> punch_hole(byte_extent) noexcept override {
        return failure({EBADF, "write to the original content of a volume"});
    }
    using device::read_at;
    using device::write_at;

private:
    result<void> read_piece(std::uint64_t offset, std::span<std::byte> into) {
        if (const auto done = volume_.read_at(offset, into); not done) return done;
        const std::uint64_t end = offset + into.size();
        auto next = std::ranges::upper_bound(
            sorted_, offset, {}, [](const entry& each) { return each.range.offset + each.range.length; });
        for (; next != sorted_.end() and next->range.offset < end; ++next) {
            const std::uint64_t from = std::max(offset, next->range.offset);
            const std::uint64_t to = std::min(end, next->range.offset + next->range.length);
            ENSURE(from < to and to <= end, "a record that overlaps what is read");
            const auto piece = into.subspan(from - offset, to - from);
            const auto done = log_.log_->read_at(next->place + (from - next->range.offset), piece);
            if (not done) return done;
        }
        return {};
    }

    device& volume_;
    const undo_log& log_;
    std::vector<entry> sorted_;
};

std::expected<undo_log, std::string> undo_log::open(device& log, std::uint64_t present_bytes) {
    std::array<std::byte, sizeof(undo_header)> bytes{};
    if (present_bytes < bytes.size() or log.size_bytes() < bytes.size())
        return std::unexpected("not an undo file");
    if (const auto done = log.read_at(0, std::span<std::byte>(bytes)); not done)
        return std::unexpected(done.error().reason());
    const auto binding = decode(*bytes_view(bytes).take<undo_header>());
    if (not binding) return std::unexpected(binding.error());
    undo_log opened(log, *binding);
    const std::uint64_t present = std::min(present_bytes, log.size_bytes());
    if (const auto done = opened.read_records(present); not done) return std::unexpected(done.error());
    if (not opened.is_disjoint()) return std::unexpected("damaged: two of its records overlap");
    return opened;
}

std::expected<void, std::string> undo_log::read_records(std::uint64_t present_bytes) {
    const bool is_open = binding_.state == undo_state::recording;
    const std::uint64_t end = is_open ? present_bytes : binding_.log_bytes;
    if (end > present_bytes) return std::unexpected("damaged: the file is shorter than its records");
    std::vector<std::byte> room;
    while (end_ < end) {
        // A crash can leave an incomplete last record.
        const bool may_be_torn = is_open and end - end_ <= sizeof(undo_record) + undo_record_bytes_max;
        const auto stop = [&]() -> std::expected<void, std::string> {
            if (may_be_torn) return {};
            return std::unexpected(damaged);
        };
        if (end - end_ < sizeof(undo_record)) return stop();
        undo_record record{};
        if (const auto done = log_->read_at(end_, std::as_writable_bytes(std::span(&record, 1))); not done)
            return std::unexpected(done.error().reason());
        const byte_extent range{.offset = record.offset.value(), .length = record.length.value()};
        const std::uint64_t place = end_ + sizeof record;
        if (range.length == 0 or range.length > undo_record_bytes_max or range.length > end - place or
            range.offset > binding_.volume.length or range.length > binding_.volume.length - range.offset)
            return stop();
        room.resize(range.length);
        if (const auto done = log_->read_at(place, std::span(room)); not done)
            return std::unexpected(done.error().reason());
        if (record.checksum.value() !=
            checksum_of(binding_, end_, record, bytes_view(room.data(), room.size())))
            return stop();
        entries_.push_back({.range = range, .place = place});
        end_ = place + range.length;
    }
    return {};
}

bool undo_log::is_disjoint() const {
    std::vector<byte_extent> sorted;
    for (const entry& each : entries_)
        sorted.push_back(each.range);
    std::ranges::sort(sorted, {}, &byte_extent::offset);
    const auto overlap = std::ranges::adjacent_find(
        sorted, [](const byte_extent& a, const byte_extent& b) { return a.offset + a.length > b.offset; });
    return overlap == sorted.end();
}

std::uint64_t undo_log::recorded_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const entry& each : entries_)
        bytes += each.range.length;
    return bytes;
}

result<std::uint32_t> undo_log::changed_checksum(device& volume) {
    std::vector<std::byte> room;
    std::uint32_t sum = 0;
    for (const entry& each : entries_) {
        room.resize(each.range.length);
        if (const auto done = volume.read_at(each.range.offset, std::span(room)); not done)
            return failure(done.error());
        sum = crc32(bytes_view(room.data(), room.size()), sum);
    }
    return sum;
}

std::expected<void, std::string> undo_log::check_image(device& image, std::int64_t image_modified) {
    if (binding_.state == undo_state::undone) return std::unexpected("the repair has been undone already");
    if (image.size_bytes() != binding_.image_bytes)
        return std::unexpected("belongs to another image: of " + std::to_string(binding_.image_bytes) +
                               " bytes, and this one has " + std::to_string(image.size_bytes()));
    auto volume = partition_device::of(image, binding_.volume);
    if (not volume) return std::unexpected(volume.error().reason());
    if (binding_.state != undo_state::complete) {
        original_view originals(*volume, *this);
        const auto fingerprint = volume_fingerprint(originals, binding_.fingerprint_bytes);
        if (not fingerprint) return std::unexpected(fingerprint.error().reason());
        if (*fingerprint == binding_.before) return {};
        return std::unexpected("belongs to another image, or the image was changed since");
    }
    const auto fingerprint = volume_fingerprint(*volume, binding_.fingerprint_bytes);
    if (not fingerprint) return std::unexpected(fingerprint.error().reason());
    const auto changed = changed_checksum(*volume);
    if (not changed) return std::unexpected(changed.error().reason());
    if (*fingerprint != binding_.after or *changed != binding_.changed)
        return std::unexpected("belongs to another image, or the image was changed since the repair");
    if (binding_.image_modified != 0 and image_modified != 0 and binding_.image_modified != image_modified)
        return std::unexpected("the image was copied, touched or written to since the repair");
    return {};
}

result<void> undo_log::set_state(undo_state state) {
    ENSURE(binding_.state == undo_state::recording or binding_.log_bytes == end_,
           "the header has the end of the records");
    binding_.state = state;
    binding_.log_bytes = end_;
    const undo_header raw = encode(binding_);
    if (const auto done = log_->write_at(0, bytes_of(raw).span()); not done) return done;
    return log_->barrier();
}

std::expected<void, std::string> undo_log::apply(device& image) {
    auto volume = partition_device::of(image, binding_.volume);
    if (not volume) return std::unexpected("the image ends before the volume does");
    const auto refuse = [](const error& why) { return std::unexpected(why.reason()); };
    if (const auto done = set_state(undo_state::undoing); not done) return refuse(done.error());
    std::vector<std::byte> room;
    for (const entry& each : entries_) {
        room.resize(each.range.length);
        if (const auto done = log_->read_at(each.place, std::span(room)); not done)
            return refuse(done.error());
        const auto bytes = std::span<const std::byte>(room);
        if (const auto done = volume->write_at(each.range.offset, bytes); not done)
            return refuse(done.error());
    }
    if (const auto done = image.barrier(); not done) return refuse(done.error());
    if (const auto done = set_state(undo_state::undone); not done) return refuse(done.error());
    return {};
}

}  // namespace sluice::fat

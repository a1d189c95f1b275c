#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/fat/device/overlay_device.hpp"

// Writing to an overlay: in place if a block has a slot; otherwise its first write.

namespace sluice::fat {

// Locks the blocks from `offset` on that have no slots, as many as one call can write, at most
// `most` bytes. Locks none if another writer was first.
overlay_device::first_write overlay_device::begin_first_write(std::uint64_t offset,
                                                              std::uint64_t most) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    const std::uint64_t within = offset % block_bytes;
    most = std::min(most, std::uint64_t{overlay_layout::slots_per_group} * block_bytes);
    const bool is_last = most == size_bytes() - offset;
    first_write made{.is_whole = within == 0 and (most >= block_bytes or is_last)};
    if (not made.is_whole) most = std::min(most, block_bytes - within);
    if (made.is_whole and not is_last) most -= most % block_bytes;
    made.held =
        first_writes_.lock({.where = sync::byte_range::between(
                                {.first = offset / block_bytes, .last = (offset + most - 1) / block_bytes})});
    const segment there = segment_at(offset, most);
    if (there.slot == no_slot) made.bytes = there.bytes;
    ENSURE(made.is_whole or made.bytes <= block_bytes - within, "a part is one of a single block");
    return made;
}

// Writes whole blocks that have no slots, in a first write.
result<std::uint64_t> overlay_device::write_new(std::uint64_t offset,
                                                std::span<const std::byte> bytes) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    const std::uint32_t block = block_at(offset);
    ENSURE(offset % block_bytes == 0 and not bytes.empty(), "a block gets a slot as a whole");
    const auto run = take_slots(static_cast<std::uint32_t>((bytes.size() + block_bytes - 1) / block_bytes));
    if (not run) return failure(run.error());
    const std::uint64_t length =
        std::min<std::uint64_t>(bytes.size(), std::uint64_t{run->count} * block_bytes);
    const auto done = store_.write_at(binding_.layout.slot_offset(run->first),
                                      bytes.first(static_cast<std::size_t>(length)));
    if (not done) {
        release(*run);
        return failure(done.error());
    }
    publish(block, *run);
    return length;
}

// Writes a part of one block that has no slot, in a first write.
result<std::uint64_t> overlay_device::write_part(std::uint64_t offset,
                                                 std::span<const std::byte> bytes) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    const std::uint32_t block = block_at(offset);
    const std::uint64_t within = offset % block_bytes;
    ENSURE(within + bytes.size() <= bytes_of(block), "a part of one block");
    std::vector<std::byte> room(static_cast<std::size_t>(bytes_of(block)));
    if (const auto read = image_.read_at(offset - within, room); not read) return failure(read.error());
    std::ranges::copy(bytes, room.begin() + static_cast<std::ptrdiff_t>(within));
    const auto done = write_new(offset - within, room);
    return done ? bytes.size() : result<std::uint64_t>(failure(done.error()));
}

// Writes to blocks that had no slots when they were last checked. Returns the number of bytes
// written.
result<std::uint64_t> overlay_device::write_first(std::uint64_t offset,
                                                  std::span<const std::byte> bytes) noexcept {
    const first_write now = begin_first_write(offset, bytes.size());
    if (now.bytes == 0) return 0U;
    const auto part = bytes.first(static_cast<std::size_t>(now.bytes));
    return now.is_whole ? write_new(offset, part) : write_part(offset, part);
}

result<void> overlay_device::write_piece(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    while (not bytes.empty()) {
        const segment into = segment_at(offset, bytes.size());
        const auto part = bytes.first(static_cast<std::size_t>(into.bytes));
        std::uint64_t length = part.size();
        if (into.slot != no_slot) {
            const auto done = store_.write_at(place_in_store(into.slot, offset), part);
            if (not done) return done;
        } else {
            const auto done = write_first(offset, part);
            if (not done) return failure(done.error());
            length = *done;
        }
        ENSURE(length <= part.size() and (length != 0 or slot_of(block_at(offset)) != no_slot),
               "the transfer makes progress");
        bytes = bytes.subspan(static_cast<std::size_t>(length));
        offset += length;
    }
    return {};
}

result<void> overlay_device::write_at(std::uint64_t offset, io::const_buffers_type pieces) noexcept {
    if (not is_writable()) return failure({EBADF, "write to an overlay opened for reading"});
    const std::uint64_t wanted = bytes_in(pieces);
    if (const auto inside = check_inside({offset, wanted}, "write past the end of the image"); not inside)
        return inside;
    if (wanted == 0) return {};
    if (const segment whole = segment_at(offset, wanted); whole.slot != no_slot and whole.bytes == wanted)
        return store_.write_at(place_in_store(whole.slot, offset), pieces);
    for (const io::const_buffer& each : pieces) {
        if (const auto done = write_piece(offset, each.bytes()); not done) return done;
        offset += each.size();
    }
    return {};
}

// Punches holes into the store for whole blocks, which get entries; writes zeros for the rest.
result<void> overlay_device::punch_hole(byte_extent range) noexcept {
    if (not is_writable()) return failure({EBADF, "write to an overlay opened for reading"});
    if (const auto inside = check_inside(range, "hole past the end of the image"); not inside) return inside;
    while (range.length != 0) {
        const segment into = segment_at(range.offset, range.length);
        std::uint64_t length = into.bytes;
        if (into.slot != no_slot) {
            const auto done = store_.punch_hole({place_in_store(into.slot, range.offset), length});
            if (not done) return done;
        } else {
            const auto done = clear_first(range.offset, length);
            if (not done) return failure(done.error());
            length = *done;
        }
        ENSURE(length <= into.bytes and (length != 0 or slot_of(block_at(range.offset)) != no_slot),
               "the hole makes progress");
        range.offset += length;
        range.length -= length;
    }
    return {};
}

// Clears blocks that had no slots when they were last checked. Returns the number of bytes cleared.
result<std::uint64_t> overlay_device::clear_first(std::uint64_t offset, std::uint64_t length) noexcept {
    static constexpr std::array<std::byte, 4096> zeros{};
    const first_write now = begin_first_write(offset, length);
    if (now.bytes == 0) return 0U;
    if (now.is_whole and now.bytes >= binding_.layout.block_bytes)
        return clear_new(offset, now.bytes - now.bytes % binding_.layout.block_bytes);
    return write_part(
        offset,
        std::span(zeros).first(static_cast<std::size_t>(std::min<std::uint64_t>(now.bytes, zeros.size()))));
}

result<std::uint64_t> overlay_device::clear_new(std::uint64_t offset, std::uint64_t length) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    ENSURE(offset % block_bytes == 0 and length >= block_bytes, "a block gets a slot as a whole");
    const auto run = take_slots(static_cast<std::uint32_t>(length / block_bytes));
    if (not run) return failure(run.error());
    const std::uint64_t cleared = std::uint64_t{run->count} * block_bytes;
    const auto done = store_.punch_hole({binding_.layout.slot_offset(run->first), cleared});
    if (not done) {
        release(*run);
        return failure(done.error());
    }
    publish(block_at(offset), *run);
    return cleared;
}

}  // namespace sluice::fat

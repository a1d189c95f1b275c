#include "sluice/fat/device/overlay_device.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t image_bytes_max = std::uint64_t{1} << 48;

result<void> write_header(device& store, const overlay_binding& binding) noexcept {
    const overlay_header raw = encode(binding);
    const auto done = store.write_at(0, std::as_bytes(std::span(&raw, 1)));
    return done ? store.barrier() : done;
}

}  // namespace

result<void> overlay_device::format(device& image, device& store, std::int64_t image_modified,
                                    const std::array<std::byte, 16>& id) {
    if (image.size_bytes() > image_bytes_max) return failure({EINVAL, "make overlay"});
    const auto fingerprint = fingerprint_of(image);
    if (not fingerprint) return failure(fingerprint.error());
    return write_header(store, {.layout = overlay_layout::for_image(image.size_bytes()),
                                .state = overlay_state::collecting,
                                .fingerprint = *fingerprint,
                                .image_modified = image_modified,
                                .id = id});
}

overlay_device::overlay_device(device& image, device& store, const overlay_binding& binding)
    : image_(image), store_(store), binding_(binding), map_(binding.layout.block_count() / leaf_blocks + 1) {}

std::expected<std::unique_ptr<overlay_device>, std::string> overlay_device::open(
    device& image, device& store, std::uint64_t present_bytes) {
    overlay_header raw{};
    if (present_bytes < sizeof raw or store.size_bytes() < sizeof raw)
        return std::unexpected("is not an overlay");
    if (const auto read = store.read_at(0, std::as_writable_bytes(std::span(&raw, 1))); not read)
        return std::unexpected(read.error().message());
    const auto binding = decode(raw);
    if (not binding) return std::unexpected(binding.error());
    if (binding->layout.image_bytes != image.size_bytes())
        return std::unexpected("belongs to an image of " + std::to_string(binding->layout.image_bytes) +
                               " bytes, this one has " + std::to_string(image.size_bytes()));
    std::unique_ptr<overlay_device> made(new overlay_device(image, store, *binding));
    if (const auto loaded = made->load(std::min(present_bytes, store.size_bytes())); not loaded)
        return std::unexpected(loaded.error());
    return made;
}

std::expected<void, std::string> overlay_device::load(std::uint64_t present_bytes) {
    const overlay_layout& layout = binding_.layout;
    for (std::uint32_t group = 0; group < layout.group_count(); ++group) {
        const std::uint64_t offset = layout.group_offset(group);
        if (offset >= present_bytes or present_bytes - offset < overlay_layout::page_bytes) break;
        if (const auto loaded = load_group(group, present_bytes); not loaded) return loaded;
    }
    return {};
}

std::expected<void, std::string> overlay_device::load_group(std::uint32_t group,
                                                            std::uint64_t present_bytes) {
    const overlay_layout& layout = binding_.layout;
    std::array<overlay_entry, overlay_layout::slots_per_group> page;
    const auto read = store_.read_at(layout.group_offset(group), std::as_writable_bytes(std::span(page)));
    if (not read) return std::unexpected(read.error().message());
    for (std::uint32_t i = 0; i < page.size(); ++i) {
        const std::uint32_t slot = group * overlay_layout::slots_per_group + i;
        const std::uint32_t block = page[i].block_plus_one.value() - 1;
        if (page[i].block_plus_one.value() == 0 and page[i].checksum.value() == 0) continue;
        const auto damaged = [&](const char* how) {
            return std::unexpected("is damaged: the entry of slot " + std::to_string(slot) + ' ' + how);
        };
        const overlay_entry right = encode_entry(binding_, slot, block);
        if (page[i].checksum.value() != right.checksum.value()) return damaged("has a wrong checksum");
        if (block >= layout.block_count()) return damaged("names a block past the end of the image");
        if (slot_of(block) != no_slot) return damaged("names a block that another slot holds");
        if (layout.slot_offset(slot) > present_bytes or
            present_bytes - layout.slot_offset(slot) < bytes_of(block))
            return damaged("is past the end of the file, which was truncated");
        ENSURE(next_ <= slot, "slots are loaded in ascending order");
        for (; next_ < slot; ++next_)
            free_.push_back(next_);  // a crash occurred before its entry was written
        next_ = slot + 1;
        set_slot(block, slot + 1);
    }
    return {};
}

result<void> overlay_device::rebind(const overlay_binding& binding) noexcept {
    ENSURE(binding.layout.image_bytes == binding_.layout.image_bytes and binding.id == binding_.id);
    const auto done = write_header(store_, binding);
    if (done) binding_ = binding;
    return done;
}

std::uint32_t overlay_device::held_blocks() const noexcept {
    const std::scoped_lock guard(slots_);
    return held_;
}

std::uint64_t overlay_device::bytes_of(std::uint32_t block) const noexcept {
    ENSURE(block < binding_.layout.block_count(), "a block of the image");
    const std::uint64_t offset = std::uint64_t{block} * binding_.layout.block_bytes;
    return std::min<std::uint64_t>(binding_.layout.block_bytes, binding_.layout.image_bytes - offset);
}

std::uint32_t overlay_device::slot_of(std::uint32_t block) const noexcept {
    // Pairs with the stores in set_slot.
    const leaf* const in = map_[block / leaf_blocks].load(std::memory_order_acquire);
    return in == nullptr ? no_slot : (*in)[block % leaf_blocks].load(std::memory_order_acquire);
}

// Requires slots_, or exclusive access.
void overlay_device::set_slot(std::uint32_t block, std::uint32_t slot) {
    ENSURE(slot != no_slot and block < binding_.layout.block_count() and slot_of(block) == no_slot,
           "invariant 1");
    leaf* in = map_[block / leaf_blocks].load(std::memory_order_relaxed);
    if (in == nullptr) {
        leaves_.push_back(std::make_unique<leaf>());
        in = leaves_.back().get();
        map_[block / leaf_blocks].store(in, std::memory_order_release);  // pairs with the load in slot_of
    }
    ++held_;
    ENSURE(held_ <= binding_.layout.block_count(), "each block is held once");
    (*in)[block % leaf_blocks].store(slot, std::memory_order_release);  // pairs with the load in slot_of
}

result<overlay_device::slot_run> overlay_device::take_slots(std::uint32_t most) {
    ENSURE(most != 0);
    const std::scoped_lock guard(slots_);
    if (not free_.empty()) {
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        return slot_run{.first = slot, .count = 1};
    }
    const std::uint32_t within = next_ % overlay_layout::slots_per_group;
    if (within == 0) {
        ENSURE(next_ / overlay_layout::slots_per_group < binding_.layout.group_count(), "a slot for a block");
        // Allocate the space of the entries now, so that a full disk is detected here and not in a
        // barrier.
        const std::array<std::byte, overlay_layout::page_bytes> zeros{};
        const auto done = store_.write_at(binding_.layout.entry_offset(next_), zeros);
        if (not done) return failure(done.error());
    }
    const slot_run taken{.first = next_, .count = std::min(most, overlay_layout::slots_per_group - within)};
    next_ += taken.count;
    return taken;
}

void overlay_device::give_back(slot_run which) {
    const std::scoped_lock guard(slots_);
    ENSURE(which.first <= next_ and which.count <= next_ - which.first, "only allocated slots are released");
    for (std::uint32_t i = 0; i < which.count; ++i)
        free_.push_back(which.first + i);
}

void overlay_device::publish(std::uint32_t block, slot_run in) {
    const std::scoped_lock guard(slots_);
    ENSURE(in.first <= next_ and in.count <= next_ - in.first, "a slot is taken before it is used");
    for (std::uint32_t i = 0; i < in.count; ++i) {
        set_slot(block + i, in.first + i + 1);
        unwritten_.push_back(block + i);
    }
}

// Returns the longest range from `offset` on that one transfer can cover, at most `most` bytes.
overlay_device::stretch overlay_device::stretch_at(std::uint64_t offset, std::uint64_t most) const noexcept {
    ENSURE(most != 0, "the transfer is not empty");
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    auto block = static_cast<std::uint32_t>(offset / block_bytes);
    stretch found{.bytes = block_bytes - offset % block_bytes, .slot = slot_of(block)};
    std::uint32_t slot = found.slot;
    while (found.bytes < most) {
        if (slot != no_slot and slot++ % overlay_layout::slots_per_group == 0) break;  // the group's last
        if (slot_of(++block) != slot) break;
        found.bytes += block_bytes;
    }
    found.bytes = std::min(found.bytes, most);
    return found;
}

std::uint64_t overlay_device::place_in_store(std::uint32_t slot, std::uint64_t offset) const noexcept {
    ENSURE(slot != no_slot, "the block is in the store");
    return binding_.layout.slot_offset(slot - 1) + offset % binding_.layout.block_bytes;
}

result<void> overlay_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    const std::uint64_t wanted = bytes_in(pieces);
    if (const auto inside = check_inside({offset, wanted}, "read past the end of the image"); not inside)
        return inside;
    if (wanted == 0) return {};
    const auto read = [&](const stretch& from, io::buffers_type into) {
        return from.slot == no_slot ? image_.read_at(offset, into)
                                    : store_.read_at(place_in_store(from.slot, offset), into);
    };
    if (const stretch whole = stretch_at(offset, wanted); whole.bytes == wanted) return read(whole, pieces);
    for (const io::buffer& each : pieces) {
        for (std::span<std::byte> left = each.bytes(); not left.empty();) {
            const stretch from = stretch_at(offset, left.size());
            io::buffer piece(left.first(static_cast<std::size_t>(from.bytes)));
            if (const auto done = read(from, io::buffers_type(&piece, 1)); not done) return done;
            left = left.subspan(piece.size());
            offset += piece.size();
        }
    }
    return {};
}

result<bool> overlay_device::try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept {
    if (const auto inside = check_inside({offset, into.size()}, "read past the end of the image"); not inside)
        return failure(inside.error());
    while (not into.empty()) {
        const stretch from = stretch_at(offset, into.size());
        const auto part = into.first(static_cast<std::size_t>(from.bytes));
        const auto got = from.slot == no_slot ? image_.try_read_at(offset, part)
                                              : store_.try_read_at(place_in_store(from.slot, offset), part);
        if (not got or not*got) return got;
        into = into.subspan(part.size());
        offset += part.size();
    }
    return true;
}

// Whole blocks that have no slots. Nobody else transfers them meanwhile, so no lock is needed.
result<std::uint64_t> overlay_device::write_new(std::uint64_t offset,
                                                std::span<const std::byte> bytes) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    const auto block = static_cast<std::uint32_t>(offset / block_bytes);
    ENSURE(offset % block_bytes == 0 and not bytes.empty(), "a block gets a slot as a whole");
    const auto run = take_slots(static_cast<std::uint32_t>((bytes.size() + block_bytes - 1) / block_bytes));
    if (not run) return failure(run.error());
    const std::uint64_t length =
        std::min<std::uint64_t>(bytes.size(), std::uint64_t{run->count} * block_bytes);
    const auto done = store_.write_at(binding_.layout.slot_offset(run->first),
                                      bytes.first(static_cast<std::size_t>(length)));
    if (not done) {
        give_back(*run);
        return failure(done.error());
    }
    publish(block, *run);
    return length;
}

// A part of one block, which gets a slot if it has none.
result<void> overlay_device::write_part(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    const auto block = static_cast<std::uint32_t>(offset / block_bytes);
    ENSURE(offset % block_bytes + bytes.size() <= bytes_of(block), "a part of one block");
    const std::scoped_lock guard(first_[block % lock_count]);
    if (const std::uint32_t slot = slot_of(block); slot != no_slot)
        return store_.write_at(place_in_store(slot, offset), bytes);
    std::vector<std::byte> room(static_cast<std::size_t>(bytes_of(block)));
    if (const auto read = image_.read_at(offset - offset % block_bytes, room); not read) return read;
    std::ranges::copy(bytes, room.begin() + static_cast<std::ptrdiff_t>(offset % block_bytes));
    const auto done = write_new(offset - offset % block_bytes, room);
    return done ? result<void>() : failure(done.error());
}

result<void> overlay_device::write_piece(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    while (not bytes.empty()) {
        const stretch into = stretch_at(offset, bytes.size());
        const bool is_whole =
            offset % block_bytes == 0 and (into.bytes >= block_bytes or offset + into.bytes == size_bytes());
        std::uint64_t length = into.bytes;
        if (into.slot != no_slot) {
            const auto done = store_.write_at(place_in_store(into.slot, offset),
                                              bytes.first(static_cast<std::size_t>(length)));
            if (not done) return done;
        } else if (is_whole) {
            if (offset + length != size_bytes()) length -= length % block_bytes;
            const auto done = write_new(offset, bytes.first(static_cast<std::size_t>(length)));
            if (not done) return failure(done.error());
            length = *done;
        } else {
            length = std::min(length, block_bytes - offset % block_bytes);
            const auto done = write_part(offset, bytes.first(static_cast<std::size_t>(length)));
            if (not done) return done;
        }
        ENSURE(length != 0 and length <= bytes.size(), "the transfer makes progress");
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
    if (const stretch whole = stretch_at(offset, wanted); whole.slot != no_slot and whole.bytes == wanted)
        return store_.write_at(place_in_store(whole.slot, offset), pieces);
    for (const io::const_buffer& each : pieces) {
        if (const auto done = write_piece(offset, each.bytes()); not done) return done;
        offset += each.size();
    }
    return {};
}

// Whole blocks become holes of the store, with an entry that says so; the rest is written.
result<void> overlay_device::punch_hole(byte_extent range) noexcept {
    if (not is_writable()) return failure({EBADF, "write to an overlay opened for reading"});
    if (const auto inside = check_inside(range, "hole past the end of the image"); not inside) return inside;
    static constexpr std::array<std::byte, 4096> zeros{};
    while (range.length != 0) {
        const stretch into = stretch_at(range.offset, range.length);
        const std::uint32_t block_bytes = binding_.layout.block_bytes;
        std::uint64_t length = into.bytes;
        result<void> done;
        if (into.slot != no_slot) {
            done = store_.punch_hole({place_in_store(into.slot, range.offset), length});
        } else if (range.offset % block_bytes == 0 and length >= block_bytes) {
            const auto cleared = clear_new(range.offset, length - length % block_bytes);
            if (cleared)
                length = *cleared;
            else
                done = failure(cleared.error());
        } else {
            length = std::min({length, block_bytes - range.offset % block_bytes, zeros.size()});
            done = write_part(range.offset, std::span(zeros).first(static_cast<std::size_t>(length)));
        }
        if (not done) return done;
        ENSURE(length != 0 and length <= range.length, "the hole makes progress");
        range.offset += length;
        range.length -= length;
    }
    return {};
}

result<std::uint64_t> overlay_device::clear_new(std::uint64_t offset, std::uint64_t length) noexcept {
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    ENSURE(offset % block_bytes == 0 and length >= block_bytes, "a block gets a slot as a whole");
    const auto run = take_slots(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(length / block_bytes, overlay_layout::slots_per_group)));
    if (not run) return failure(run.error());
    const std::uint64_t cleared = std::uint64_t{run->count} * block_bytes;
    const auto done = store_.punch_hole({binding_.layout.slot_offset(run->first), cleared});
    if (not done) {
        give_back(*run);
        return failure(done.error());
    }
    publish(static_cast<std::uint32_t>(offset / block_bytes), *run);
    return cleared;
}

result<void> overlay_device::barrier(io::barrier_kind kind) noexcept {
    const std::scoped_lock order(barrier_);
    std::vector<std::uint32_t> blocks;
    {
        const std::scoped_lock guard(slots_);
        blocks.swap(unwritten_);
    }
    auto done = store_.barrier(blocks.empty() ? kind : io::barrier_kind::wait_data_only);
    if (blocks.empty()) return done;
    if (done) done = write_entries(blocks);
    if (done) return store_.barrier(kind);
    const std::scoped_lock guard(slots_);
    unwritten_.insert(unwritten_.end(), blocks.begin(), blocks.end());
    return done;
}

// Writes the entries; adjacent ones with one write.
result<void> overlay_device::write_entries(std::vector<std::uint32_t>& blocks) noexcept {
    const auto slot_index = [&](std::uint32_t block) { return slot_of(block) - 1; };
    std::ranges::sort(blocks, {}, slot_index);
    std::vector<overlay_entry> row;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::uint32_t slot = slot_index(blocks[i]);
        ENSURE(slot != no_slot - 1, "a block that was written has a slot");
        row.push_back(encode_entry(binding_, slot, blocks[i]));
        const bool goes_on = i + 1 < blocks.size() and slot_index(blocks[i + 1]) == slot + 1 and
                             (slot + 1) % overlay_layout::slots_per_group != 0;
        if (goes_on) continue;
        const auto first = slot + 1 - static_cast<std::uint32_t>(row.size());
        const auto done = store_.write_at(binding_.layout.entry_offset(first), std::as_bytes(std::span(row)));
        if (not done) return done;
        row.clear();
    }
    return {};
}

result<void> overlay_device::copy_to(device& image, const std::function<void(std::uint64_t)>& progress) {
    std::vector<std::byte> room(binding_.layout.block_bytes);
    for (std::uint32_t block = 0; block < binding_.layout.block_count(); ++block) {
        if (slot_of(block) == no_slot) continue;
        const std::uint64_t offset = std::uint64_t{block} * binding_.layout.block_bytes;
        const auto bytes = std::span(room).first(static_cast<std::size_t>(bytes_of(block)));
        if (const auto done = read_at(offset, bytes); not done) return done;
        if (const auto done = image.write_at(offset, std::span<const std::byte>(bytes)); not done)
            return done;
        progress(bytes.size());
    }
    return image.barrier(io::barrier_kind::wait_all);
}

}  // namespace sluice::fat

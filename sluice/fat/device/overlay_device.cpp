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
        return std::unexpected("not an overlay");
    if (const auto read = store.read_at(0, std::as_writable_bytes(std::span(&raw, 1))); not read)
        return std::unexpected(read.error().reason());
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
    ENSURE(held_ + free_.size() == next_, "a slot that was used is a block's, or free");
    return {};
}

std::expected<void, std::string> overlay_device::load_group(std::uint32_t group,
                                                            std::uint64_t present_bytes) {
    const overlay_layout& layout = binding_.layout;
    std::array<overlay_entry, overlay_layout::slots_per_group> page;
    const auto read = store_.read_at(layout.group_offset(group), std::as_writable_bytes(std::span(page)));
    if (not read) return std::unexpected(read.error().reason());
    for (std::uint32_t i = 0; i < page.size(); ++i) {
        const std::uint32_t slot = group * overlay_layout::slots_per_group + i;
        const std::uint32_t block = page[i].block_plus_one.value() - 1;
        if (page[i].block_plus_one.value() == 0 and page[i].checksum.value() == 0) continue;
        const auto damaged = [&](const char* how) {
            return std::unexpected("damaged: the entry of slot " + std::to_string(slot) + ' ' + how);
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

std::uint32_t overlay_device::block_at(std::uint64_t offset) const noexcept {
    ENSURE(offset < binding_.layout.image_bytes, "a byte of the image");
    return static_cast<std::uint32_t>(offset / binding_.layout.block_bytes);
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
        // Pairs with the load in slot_of.
        map_[block / leaf_blocks].store(in, std::memory_order_release);
    }
    ++held_;
    ENSURE(held_ <= binding_.layout.block_count(), "each block is held once");
    ENSURE(held_ + free_.size() <= next_, "a slot is a block's, free, or a writer's");
    // Pairs with the load in slot_of.
    (*in)[block % leaf_blocks].store(slot, std::memory_order_release);
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

void overlay_device::release(slot_run which) {
    const std::scoped_lock guard(slots_);
    ENSURE(which.first <= next_ and which.count <= next_ - which.first, "only allocated slots are released");
    for (std::uint32_t i = 0; i < which.count; ++i)
        free_.push_back(which.first + i);
    ENSURE(held_ + free_.size() <= next_, "a slot is a block's, free, or a writer's");
}

void overlay_device::publish(std::uint32_t block, slot_run in) {
    const std::scoped_lock guard(slots_);
    ENSURE(in.first <= next_ and in.count <= next_ - in.first, "a slot is taken before it is used");
    for (std::uint32_t i = 0; i < in.count; ++i) {
        set_slot(block + i, in.first + i + 1);
        unwritten_.push_back(block + i);
    }
    ENSURE(unwritten_.size() <= held_, "an entry is of a block that is held");
}

// Returns the longest range from `offset` on that one transfer can cover, at most `most` bytes.
overlay_device::segment overlay_device::segment_at(std::uint64_t offset, std::uint64_t most) const noexcept {
    ENSURE(most != 0, "the transfer is not empty");
    const std::uint32_t block_bytes = binding_.layout.block_bytes;
    std::uint32_t block = block_at(offset);
    segment found{.bytes = block_bytes - offset % block_bytes, .slot = slot_of(block)};
    std::uint32_t slot = found.slot;
    while (found.bytes < most) {
        // The group's last.
        if (slot != no_slot and slot++ % overlay_layout::slots_per_group == 0) break;
        if (slot_of(++block) != slot) break;
        found.bytes += block_bytes;
    }
    found.bytes = std::min(found.bytes, most);
    return found;
}

std::uint64_t overlay_device::place_in_store(std::uint32_t slot, std::uint64_t offset) const noexcept {
    return binding_.layout.slot_offset(slot - 1) + offset % binding_.layout.block_bytes;
}

result<void> overlay_device::read_at(std::uint64_t offset, io::buffers_type pieces) noexcept {
    const std::uint64_t wanted = bytes_in(pieces);
    if (const auto inside = check_inside({offset, wanted}, "read past the end of the image"); not inside)
        return inside;
    if (wanted == 0) return {};
    const auto read = [&](const segment& from, io::buffers_type into) {
        return from.slot == no_slot ? image_.read_at(offset, into)
                                    : store_.read_at(place_in_store(from.slot, offset), into);
    };
    if (const segment whole = segment_at(offset, wanted); whole.bytes == wanted) return read(whole, pieces);
    for (const io::buffer& each : pieces) {
        for (std::span<std::byte> left = each.bytes(); not left.empty();) {
            const segment from = segment_at(offset, left.size());
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
        const segment from = segment_at(offset, into.size());
        const auto part = into.first(static_cast<std::size_t>(from.bytes));
        const auto got = from.slot == no_slot ? image_.try_read_at(offset, part)
                                              : store_.try_read_at(place_in_store(from.slot, offset), part);
        if (not got or not*got) return got;
        into = into.subspan(part.size());
        offset += part.size();
    }
    return true;
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
    ENSURE(unwritten_.size() <= held_, "an entry is of a block that is held");
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
    std::uint32_t copied = 0;
    for (std::uint32_t block = 0; block < binding_.layout.block_count(); ++block) {
        if (slot_of(block) == no_slot) continue;
        const std::uint64_t offset = std::uint64_t{block} * binding_.layout.block_bytes;
        const auto bytes = std::span(room).first(static_cast<std::size_t>(bytes_of(block)));
        if (const auto done = read_at(offset, bytes); not done) return done;
        if (const auto done = image.write_at(offset, std::span<const std::byte>(bytes)); not done)
            return done;
        progress(bytes.size());
        ++copied;
    }
    ENSURE(copied == held_blocks(), "the blocks that are held are those with slots");
    return image.barrier(io::barrier_kind::wait_all);
}

}  // namespace sluice::fat

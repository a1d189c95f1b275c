#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/fat/codec/overlay_format.hpp"
#include "sluice/sync/range_lock.hpp"

namespace sluice::fat {

/// An image with an overlay: writes go to the overlay; blocks that were never written are read from
/// the image, which is not changed.
///
/// The first write to a block allocates a slot and copies the rest of the block from the image;
/// later writes are in place. A barrier makes the slots durable, and only then the entries that
/// refer to them. So after a crash each block has the content that the device below would have, and
/// never the content of another block.
///
/// Invariants:
///   1. slot_of(block) is set once, under slots_, after the slot holds the whole block. A thread
///      that reads the slot sees the block.
///   2. The first write to blocks, whole ones or a part of one, holds their range of first_writes_
///      from the lookup of their slots until the slots are set. So a block never gets two slots,
///      and there are enough slots if there are as many as blocks. first_writes_ is locked before
///      slots_.
///   3. A slot belongs to the writer that allocated it, under slots_, until this writer assigns it
///      to a block or frees it. No other thread can find it before.
///   4. An entry reaches the store only after a barrier that follows the last byte copied for it.
/// Thread safety: as device. Memory: 4 bytes per block in each group of 1,024 blocks with a written
/// block; at most 64 MiB. Allocates: that. Errors: as device; ENOSPC if the store is full, and then
/// no earlier write is lost. The next barrier tries again to write the entries that a barrier
/// failed to write.
class overlay_device final : public device {
public:
    /// Creates an empty overlay in `store`, which holds zeros. `image_modified` as in
    /// overlay_binding.
    /// Errors: those of the devices; EINVAL for an image beyond 2^48 bytes.
    [[nodiscard]] static result<void> format(device& image, device& store, std::int64_t image_modified,
                                             const std::array<std::byte, 16>& id);

    /// Opens an overlay that format() has created. `present_bytes` is the real length of the store;
    /// slots past it are damage. Both devices outlive it.
    /// Errors: a sentence: damage, or the read error. Complexity: O(size of the store), at most
    /// 32,768 reads.
    [[nodiscard]] static std::expected<std::unique_ptr<overlay_device>, std::string> open(
        device& image, device& store, std::uint64_t present_bytes);

    [[nodiscard]] const overlay_binding& binding() const noexcept { return binding_; }
    /// Writes another header, durably. Call it from one thread. Errors: those of the store.
    [[nodiscard]] result<void> rebind(const overlay_binding& binding) noexcept;

    /// Returns the number of blocks in the overlay. Complexity: O(1).
    [[nodiscard]] std::uint32_t held_blocks() const noexcept;
    /// Writes every block of the overlay to `image`, in ascending order, and makes that durable.
    /// Calls `progress` with the number of bytes of each block. No other call may be in progress.
    /// Errors: those of the devices; the call can be repeated.
    [[nodiscard]] result<void> copy_to(device& image, const std::function<void(std::uint64_t)>& progress);

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return image_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return store_.is_writable(); }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(
        io::barrier_kind kind = io::barrier_kind::wait_data_only) noexcept override;
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    using device::read_at;
    using device::write_at;

private:
    static constexpr std::uint32_t no_slot = 0;  // in the map, slots are counted from 1
    static constexpr std::uint32_t leaf_blocks = 1024;
    using leaf = std::array<std::atomic<std::uint32_t>, leaf_blocks>;

    overlay_device(device& image, device& store, const overlay_binding& binding);

    [[nodiscard]] std::uint32_t block_at(std::uint64_t offset) const noexcept;
    [[nodiscard]] std::uint32_t slot_of(std::uint32_t block) const noexcept;
    void set_slot(std::uint32_t block, std::uint32_t slot);
    [[nodiscard]] std::expected<void, std::string> load(std::uint64_t present_bytes);
    [[nodiscard]] std::expected<void, std::string> load_group(std::uint32_t group,
                                                              std::uint64_t present_bytes);
    [[nodiscard]] std::uint64_t bytes_of(std::uint32_t block) const noexcept;
    struct slot_run {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };
    [[nodiscard]] result<slot_run> take_slots(std::uint32_t most);
    void release(slot_run which);
    void publish(std::uint32_t block, slot_run in);

    struct segment {  // blocks in consecutive slots, or in the image
        std::uint64_t bytes = 0;
        std::uint32_t slot = no_slot;
    };
    [[nodiscard]] segment segment_at(std::uint64_t offset, std::uint64_t most) const noexcept;
    [[nodiscard]] std::uint64_t place_in_store(std::uint32_t slot, std::uint64_t offset) const noexcept;
    struct first_write {
        sync::range_guard held{};
        std::uint64_t bytes = 0;
        bool is_whole = false;  // whole blocks; otherwise a part of one
    };
    [[nodiscard]] first_write begin_first_write(std::uint64_t offset, std::uint64_t most) noexcept;
    [[nodiscard]] result<std::uint64_t> write_new(std::uint64_t offset,
                                                  std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] result<std::uint64_t> write_part(std::uint64_t offset,
                                                   std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] result<std::uint64_t> write_first(std::uint64_t offset,
                                                    std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] result<void> write_piece(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;
    [[nodiscard]] result<std::uint64_t> clear_new(std::uint64_t offset, std::uint64_t length) noexcept;
    [[nodiscard]] result<std::uint64_t> clear_first(std::uint64_t offset, std::uint64_t length) noexcept;
    [[nodiscard]] result<void> write_entries(std::vector<std::uint32_t>& blocks) noexcept;

    device& image_;
    device& store_;
    overlay_binding binding_;
    std::vector<std::atomic<leaf*>> map_;
    sync::range_lock first_writes_;  // ranges of blocks

    mutable std::mutex slots_;  // guards what follows
    std::vector<std::unique_ptr<leaf>> leaves_;
    std::vector<std::uint32_t> free_;       // slots, released or lost by a crash
    std::uint32_t next_ = 0;                // slots from here on were never used
    std::uint32_t held_ = 0;                // blocks
    std::vector<std::uint32_t> unwritten_;  // blocks whose entries are not in the store
    std::mutex barrier_;                    // taken before slots_
};

}  // namespace sluice::fat

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "sluice/fat/codec/journal_format.hpp"

namespace sluice::fat {

/// A volume with a journal in a separate file. The writes between two calls of end_batch() reach
/// the volume atomically, even if the system crashes.
///
/// Writes go to the end of the journal. end_batch() adds a record that makes the batch valid, and
/// makes the journal durable: one barrier for the whole batch. Later, a checkpoint copies the valid
/// records to the volume and resets the journal. After a crash, recover() does the same.
///
/// Invariants:
///   1. The volume changes only by a checkpoint, which copies durable records of the journal; and
///      its dirty mark is set, durably, before the first batch is valid. So if a journal is not
///      empty but its volume is marked clean, another program has changed the volume.
///   2. A checkpoint begins a new generation once the volume is durable; records of an older
///      generation are invalid.
///   3. map_ has the pieces that are newer in the journal than in the volume; they do not overlap.
///
/// A batch that does not fit is ended early. Then it is not atomic, but earlier writes are still
/// durable first. barrier() does nothing: the journal keeps the order, and only end_batch() makes
/// writes durable.
/// Thread safety: as device; writers wait for each other, and for a checkpoint. Memory: about 100
/// bytes for each write since the last checkpoint, at most journal_records_max writes. Errors: as
/// device; ENOSPC if the disk of the journal is full.
class journal_device final : public device {
public:
    /// The location of a volume and its dirty mark.
    struct place {
        byte_extent in_image;
        // Offset in the volume of the byte with the mark in bit 0.
        std::optional<std::uint64_t> dirty_mark{};
    };

    /// Creates a journal in `log`, durably; its previous content is lost. Does not write to
    /// `volume`.
    /// Errors: those of the devices.
    [[nodiscard]] static result<void> format(device& volume, device& log, const place& where, bool was_clean,
                                             const std::array<std::byte, 16>& id) noexcept;

    /// Opens a journal that format() has created, with its valid records. Both devices outlive it.
    /// Errors: a sentence: a damaged header, another volume, a volume that was changed since; the
    /// read error. Complexity: linear in the size of the records. Allocates: 256 KiB and the map.
    [[nodiscard]] static std::expected<std::unique_ptr<journal_device>, std::string> open(device& volume,
                                                                                          device& log,
                                                                                          const place& where,
                                                                                          bool is_read_only);

    [[nodiscard]] const journal_binding& binding() const noexcept { return binding_; }
    /// Returns the number of batches in the journal that may not be in the volume.
    [[nodiscard]] std::uint32_t pending_batches() const noexcept;
    /// Returns the number of batches that did not fit and were ended early.
    [[nodiscard]] std::uint32_t split_batches() const noexcept;

    /// Copies all valid records to the volume, durably. Errors: those of the devices; the call can
    /// be repeated. EBUSY if there are writes after the last end of a batch.
    [[nodiscard]] result<void> recover() noexcept;

    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return volume_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return not is_read_only_; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override;
    [[nodiscard]] result<bool> try_read_at(std::uint64_t offset, std::span<std::byte> into) noexcept override;
    [[nodiscard]] result<void> write_at(std::uint64_t offset,
                                        io::const_buffers_type pieces) noexcept override;
    [[nodiscard]] result<void> barrier(
        io::barrier_kind = io::barrier_kind::wait_data_only) noexcept override {
        return {};
    }
    [[nodiscard]] result<void> punch_hole(byte_extent range) noexcept override;
    [[nodiscard]] result<void> end_batch() noexcept override;
    [[nodiscard]] bool wants_batch_end() noexcept override;
    using device::read_at;
    using device::write_at;

private:
    struct piece {
        std::uint64_t length = 0;
        std::uint64_t place = 0;  // in the journal; 0: zeros
    };
    using pieces_by_offset = std::map<std::uint64_t, piece>;
    struct change {
        std::uint64_t offset = 0;
        piece what;
    };

    journal_device(device& volume, device& log, const place& where, const journal_binding& binding,
                   bool is_read_only) noexcept
        : volume_(volume), log_(log), where_(where), binding_(binding), is_read_only_(is_read_only) {}

    [[nodiscard]] std::expected<void, std::string> load();
    [[nodiscard]] std::optional<journal_record> valid_record_at(std::uint64_t place,
                                                                std::vector<std::byte>& room) noexcept;
    [[nodiscard]] result<bool> is_marked() noexcept;

    // These require mutex_, shared or exclusive.
    enum class source : std::uint8_t { nowhere, volume, log };  // nowhere: zeros
    struct segment {
        std::uint64_t length = 0;
        source from = source::nowhere;
        std::uint64_t place = 0;  // in that device
    };
    [[nodiscard]] segment segment_at(std::uint64_t offset, std::uint64_t most) const noexcept;
    [[nodiscard]] device& device_of(const segment& one) const noexcept {
        return one.from == source::log ? log_ : volume_;
    }

    // These require mutex_, exclusive.
    void put(const change& what);
    [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept;
    [[nodiscard]] result<void> make_room(std::uint64_t bytes) noexcept;
    [[nodiscard]] result<void> append(journal_record record, io::const_buffers_type payload) noexcept;
    [[nodiscard]] result<void> write_record(std::uint64_t offset, io::const_buffers_type pieces) noexcept;
    [[nodiscard]] result<void> write_mark(bool is_dirty) noexcept;
    [[nodiscard]] bool is_mark_set_in_map() noexcept;
    [[nodiscard]] result<void> end_locked() noexcept;
    [[nodiscard]] result<void> checkpoint() noexcept;
    [[nodiscard]] result<void> copy_out() noexcept;
    [[nodiscard]] result<void> begin_generation() noexcept;

    device& volume_;
    device& log_;
    const place where_;
    journal_binding binding_;
    const bool is_read_only_;

    mutable std::shared_mutex mutex_;  // guards the members below; writers lock it exclusively
    pieces_by_offset map_;
    std::uint64_t end_ = journal_records_offset;  // end of the records
    std::uint32_t records_ = 0;                   // in this generation
    std::uint32_t in_batch_ = 0;                  // of these, since the last end of a batch
    bool is_durable_ = true;                      // up to the last end of a batch
    bool generation_is_due_ = false;              // the write of a header failed;
                                                  // must be repeated first
    bool has_mark_ = false;                       // the volume is marked dirty
    std::uint32_t batches_ = 0;
    std::uint32_t splits_ = 0;
};

}  // namespace sluice::fat

#pragma once

#include <optional>

#include "sluice/fsmutex/queue/queue_file.hpp"
#include "sluice/fsmutex/queue/slot_window.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. A scan of the slots before a position, from the nearest backwards, for
/// those that conflict with a request. It never reads a slot again that it has passed, because a
/// dead slot stays dead.
class queue_scan {
public:
    struct blocking_slot {
        std::uint64_t offset;
        std::uint64_t id;
        bool was_exclusive;  // about an entity of ours

        [[nodiscard]] std::uint64_t processor() const noexcept { return queue_bytes::processor_of(id); }
    };

    void begin(queue_file& file, std::uint64_t place) noexcept;
    /// Begins at the request's own slot: reads its page without system calls, until the end.
    void begin_at_own(queue_file& file, std::uint64_t place) noexcept;
    void end() noexcept {
        window_.close();
        view_.reset();
    }
    /// Returns, once there is no conflict, the position before which no slot is live, except on the
    /// live pages. It is the request's own position if no slot before it was live.
    [[nodiscard]] std::uint64_t dead_before() const noexcept { return lowest_live_; }
    /// Records that a conflicting slot stays in the file because its owner is dead.
    void record_remains(const blocking_slot& found) noexcept;

    /// Returns the next conflicting slot, or std::nullopt after the last. Errors: EIO, ENOMEM,
    /// EBADMSG (also if the file was cut).
    [[nodiscard]] result<std::optional<blocking_slot>> next(queue_file& file,
                                                            std::span<const entity> wanted) noexcept;
    /// Returns, after next() returned `found`, the nearest conflicting slot from there on with the
    /// same CPU. Searches only slots that have been read.
    [[nodiscard]] std::optional<blocking_slot> neighbour(const blocking_slot& found,
                                                         std::span<const entity> wanted,
                                                         std::uint64_t processor) const noexcept;
    /// Returns whether is_there() takes no system call.
    [[nodiscard]] bool is_before_us(const blocking_slot& found) const noexcept {
        return window_.covers(found.offset);
    }
    /// Returns whether the slot still seems to be in the file.
    [[nodiscard]] bool is_there(const queue_file& file, const blocking_slot& found) const noexcept;
    /// Returns the slot as it is now: a free one if it was released.
    [[nodiscard]] static result<queue_format::slot> recheck(const queue_file& file,
                                                            const blocking_slot& found) noexcept;
    /// The same for the last result of next(). The same call also reads the slots that next()
    /// continues with.
    [[nodiscard]] result<queue_format::slot> recheck_and_scan_ahead(const queue_file& file,
                                                                    const blocking_slot& found) noexcept;

private:
    static constexpr std::size_t chunk_bytes = 6 << 10;

    [[nodiscard]] result<std::optional<blocking_slot>> next_near(queue_file& file,
                                                                 std::span<const entity> wanted) noexcept;
    [[nodiscard]] result<void> read_chunk_before(const queue_file& file, std::uint64_t end) noexcept;
    [[nodiscard]] result<queue_format::slot> slot_in_chunk(const queue_file& file,
                                                           std::uint64_t offset) const noexcept;
    void take_view(queue_file& file, std::shared_ptr<const queue_view> fresh) noexcept;
    [[nodiscard]] result<std::optional<blocking_slot>> next_live_page_slot(
        queue_file& file, std::span<const entity> wanted) noexcept;

    slot_window window_;
    std::shared_ptr<const queue_view> view_;
    std::uint64_t floor_ = 0;
    std::uint64_t lowest_live_ = 0;  // among the slots passed
    std::uint64_t cursor_ = 0;       // all from here to the position is passed
    bool is_refreshed_ = false;
    std::size_t live_page_ = 0;       // the next one, counted in slots
    std::uint64_t chunk_begin_ = 0;   // read and not passed: from here to the cursor
    std::uint64_t chunk_offset_ = 0;  // the offset of its first byte
    std::size_t chunk_read_ = 0;
    std::array<std::byte, chunk_bytes> chunk_;
};

}  // namespace sluice::fsmutex

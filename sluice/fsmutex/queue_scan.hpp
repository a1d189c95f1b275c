#pragma once

#include <optional>

#include "sluice/fsmutex/queue_file.hpp"
#include "sluice/fsmutex/slot_window.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Looks through the slots before a place, from the nearest backwards, for those in the
/// way of a request; what it has passed it never looks at again, since no slot comes back to life.
class queue_scan {
public:
    struct obstacle {
        std::uint64_t offset;
        std::uint64_t id;
        bool was_exclusive;  // about an entity of ours

        [[nodiscard]] std::uint64_t processor() const noexcept { return queue_bytes::processor_of(id); }
    };

    void begin(queue_file& file, std::uint64_t place) noexcept;
    /// The same of a request that stands there: looks at that page without system calls, until the end.
    void begin_at_own(queue_file& file, std::uint64_t place) noexcept;
    void end() noexcept {
        window_.close();
        view_.reset();
    }
    /// Once nothing is in the way: before this no slot is live but on the elders' pages. The place itself, if
    /// nothing before it was.
    [[nodiscard]] std::uint64_t dead_before() const noexcept { return lowest_live_; }
    /// What was in the way stays: a dead one's slot.
    void note_remains(const obstacle& found) noexcept;

    /// Returns the next conflicting slot, or std::nullopt after the last. Errors: EIO, ENOMEM, EBADMSG (also
    /// if the file was cut).
    [[nodiscard]] result<std::optional<obstacle>> next(queue_file& file,
                                                       std::span<const entity> wanted) noexcept;
    /// After next() gave `found`: the nearest that is in the way, that or one before it, and was asked for on
    /// the same processor. Looks no further than has been read.
    [[nodiscard]] std::optional<obstacle> neighbour(const obstacle& found, std::span<const entity> wanted,
                                                    std::uint64_t processor) const noexcept;
    /// Whether is_there() takes no system call.
    [[nodiscard]] bool is_before_us(const obstacle& found) const noexcept {
        return window_.covers(found.offset);
    }
    /// Whether it seems to be there still.
    [[nodiscard]] bool is_there(const queue_file& file, const obstacle& found) const noexcept;
    /// That slot as it is now; free if it was given back.
    [[nodiscard]] static result<queue_format::slot> look_again(const queue_file& file,
                                                               const obstacle& found) noexcept;
    /// The same of what next() gave last; reads what next() goes on with by the same call.
    [[nodiscard]] result<queue_format::slot> look_again_and_ahead(const queue_file& file,
                                                                  const obstacle& found) noexcept;

private:
    static constexpr std::size_t chunk_bytes = 6 << 10;

    [[nodiscard]] result<std::optional<obstacle>> next_near(queue_file& file,
                                                            std::span<const entity> wanted) noexcept;
    [[nodiscard]] result<void> read_chunk_before(const queue_file& file, std::uint64_t end) noexcept;
    [[nodiscard]] result<queue_format::slot> slot_in_chunk(const queue_file& file,
                                                           std::uint64_t offset) const noexcept;
    void take_view(queue_file& file, std::shared_ptr<const queue_view> fresh) noexcept;
    [[nodiscard]] result<std::optional<obstacle>> next_elder(queue_file& file,
                                                             std::span<const entity> wanted) noexcept;

    slot_window window_;
    std::shared_ptr<const queue_view> view_;
    std::uint64_t floor_ = 0;
    std::uint64_t lowest_live_ = 0;  // of what it has passed
    std::uint64_t cursor_ = 0;       // all from here to the place is passed
    bool is_refreshed_ = false;
    std::size_t elder_ = 0;           // the next one, counted in slots
    std::uint64_t chunk_begin_ = 0;   // what has been read and not passed: from here to the cursor
    std::uint64_t chunk_offset_ = 0;  // of its first byte
    std::size_t chunk_read_ = 0;
    std::array<std::byte, chunk_bytes> chunk_;
};

}  // namespace sluice::fsmutex

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Lists whose entries begin with the distance to the next one, zero in the last: directory entries,
// streams, extended attributes, links, change notifications ([MS-FSCC] 2.4 and others).

namespace sluice::smb::wire {

enum class entry_outcome : std::uint8_t {
    written,
    no_room,   ///< it does not fit after the previous entries; the list ends before it
    bad_text,  ///< its name is not UTF-8; the list continues without it
};

/// A writer that packs entries into `room`, which outlives it. Allocates: nothing. Thread safety:
/// none of its own.
///
/// Invariant: the bytes before `end_` are a complete list, whose last entry begins at `last_`. The
/// bytes after `end_` are the remains of an entry that did not fit.
class entry_list_writer {
public:
    /// Constructs a writer whose entries begin at multiples of `alignment`, a power of two and at
    /// least 4.
    entry_list_writer(mutable_bytes room, std::size_t alignment) noexcept
        : room_(room), alignment_(alignment) {
        ENSURE(std::has_single_bit(alignment) and alignment >= sizeof(le32));
    }

    /// Calls `body(byte_writer&) -> decoded<void>`, which writes one entry after its
    /// NextEntryOffset. The writer counts from the beginning of the entry, which already contains
    /// that field. Either the complete entry is in the list or no part of it.
    template <class Body>
    [[nodiscard]] entry_outcome put(Body&& body) noexcept {
        const std::size_t padding = -end_ & (alignment_ - 1);
        if (padding > room_.size() - end_) return entry_outcome::no_room;
        const std::size_t start = end_ + padding;
        byte_writer writer(*room_.from(start));
        const auto next = writer.reserve<le32>();
        const decoded<void> written = body(writer);
        if (!written) return entry_outcome::bad_text;
        const auto entry = writer.finish();
        if (!entry) return entry_outcome::no_room;
        writer.patch(next, le32());
        if (count_ != 0) link_to(start);
        last_ = start;
        end_ = start + entry->size();
        ++count_;
        return entry_outcome::written;
    }

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Returns the list so far. It is empty if there is no entry.
    [[nodiscard]] mutable_bytes bytes() const noexcept { return *room_.first(end_); }

private:
    void link_to(std::size_t start) noexcept {
        std::fill(room_.begin() + end_, room_.begin() + start, std::byte{});
        const le32 distance(static_cast<std::uint32_t>(start - last_));
        const bytes_view wire = bytes_of(distance);
        std::copy(wire.begin(), wire.end(), room_.begin() + last_);
    }

    mutable_bytes room_;
    std::size_t alignment_;
    std::size_t last_ = 0;
    std::size_t end_ = 0;
    std::size_t count_ = 0;
};

/// A parser of such a list. The bytes outlive the reader and its results. Allocates: nothing.
class entry_list_reader {
public:
    /// `entry_bytes_min`: the fixed part of an entry with its NextEntryOffset.
    entry_list_reader(bytes_view list, std::size_t entry_bytes_min) noexcept
        : rest_(list), entry_bytes_min_(entry_bytes_min), done_(list.empty()) {
        ENSURE(entry_bytes_min >= sizeof(le32));
    }

    /// Returns the bytes of the next entry, from its NextEntryOffset, with any padding after it;
    /// std::nullopt after the last entry and after an error. An entry has at least entry_bytes_min
    /// bytes, which bounds the number of entries. Errors: `truncated`, `bad_chain` if the next
    /// entry would begin inside this one or outside the list.
    [[nodiscard]] decoded<std::optional<bytes_view>> next() noexcept {
        if (done_) return std::nullopt;
        done_ = true;
        if (rest_.size() < entry_bytes_min_) return std::unexpected(decode_error::truncated);
        const std::uint64_t distance = rest_.take<le32>()->value();
        if (distance == 0) return rest_;
        const auto entry = rest_.first(distance);
        const auto following = rest_.from(distance);
        if (distance < entry_bytes_min_ or !entry or following->empty())
            return std::unexpected(decode_error::bad_chain);
        rest_ = *following;
        done_ = false;
        return *entry;
    }

    /// Returns the next entry as decoded by `take(byte_reader&) -> decoded<T>`. Errors: also those
    /// of `take`.
    template <class Take>
    [[nodiscard]] auto next_as(Take&& take) noexcept
        -> decoded<std::optional<typename std::invoke_result_t<Take, byte_reader&>::value_type>> {
        const auto entry = next();
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return std::nullopt;
        byte_reader reader(**entry);
        auto taken = take(reader);
        if (!taken) {
            done_ = true;
            return std::unexpected(taken.error());
        }
        return std::move(*taken);
    }

private:
    bytes_view rest_;
    std::size_t entry_bytes_min_;
    bool done_;
};

}  // namespace sluice::smb::wire

#pragma once

#include <bit>

#include "sluice/base/bytes.hpp"

namespace sluice {

/// Reads untrusted bytes from front to back. A step that does not fit consumes nothing and says so, so that a
/// decoder may try another reading. Owns nothing, as bytes_view. Allocates: nothing. Thread safety: none of
/// its own.
class byte_reader {
public:
    constexpr explicit byte_reader(bytes_view bytes) noexcept : bytes_(bytes) {}

    /// Bytes consumed and bytes left.
    [[nodiscard]] constexpr std::size_t position() const noexcept { return position_; }
    [[nodiscard]] constexpr std::size_t remaining() const noexcept { return bytes_.size() - position_; }
    [[nodiscard]] constexpr bytes_view rest() const noexcept {
        return {bytes_.data() + position_, remaining()};
    }

    [[nodiscard]] constexpr bool skip(std::uint64_t length) noexcept {
        if (length > remaining()) return false;
        position_ += static_cast<std::size_t>(length);
        return true;
    }

    template <wire_type T>
    [[nodiscard]] std::optional<T> take() noexcept {
        const std::optional<T> taken = rest().take<T>();
        if (taken) position_ += sizeof(T);
        return taken;
    }

    /// A view of the next `length` bytes.
    [[nodiscard]] constexpr std::optional<bytes_view> take_bytes(std::uint64_t length) noexcept {
        const std::optional<bytes_view> taken = rest().first(length);
        if (taken) position_ += taken->size();
        return taken;
    }

    /// Skips to the next multiple of `alignment`, a power of two, counted from where the reader began. False
    /// if the bytes end before; after the last of a list padding is often absent, so that need not be an
    /// error.
    [[nodiscard]] constexpr bool align_to(std::size_t alignment) noexcept {
        ENSURE(std::has_single_bit(alignment));
        return skip(-position_ & (alignment - 1));
    }

private:
    bytes_view bytes_;
    std::size_t position_ = 0;
};

/// A field the writer has left room for, to be patched once its value is known.
template <wire_type T>
class reserved_field {
    friend class byte_writer;
    explicit reserved_field(std::size_t position) noexcept : position_(position) {}
    std::size_t position_;
};

/// Writes from front to back into bytes the caller gives. What does not fit is not written, nor is anything
/// after it, and the writer remembers: an encoder writes straight on and asks once, with finish(). The buffer
/// outlives the writer. Allocates: nothing. Thread safety: none of its own.
///
/// Invariant: every byte before `position_` has been written, or was handed out by claim(); none behind it.
class byte_writer {
public:
    constexpr explicit byte_writer(mutable_bytes room) noexcept : room_(room) {}

    /// Where the next byte goes; stands still once overflowed, when no length computed from it matters any
    /// more.
    [[nodiscard]] constexpr std::size_t position() const noexcept { return position_; }
    [[nodiscard]] constexpr bool overflowed() const noexcept { return overflowed_; }

    /// All that was written; nothing if it did not fit.
    [[nodiscard]] constexpr std::optional<mutable_bytes> finish() const noexcept {
        if (overflowed_) return std::nullopt;
        return mutable_bytes(room_.data(), position_);
    }

    template <wire_type T>
    void put(const T& wire) noexcept {
        put_bytes(bytes_of(wire));
    }

    void put_bytes(bytes_view bytes) noexcept {
        std::byte* const place = advance(bytes.size());
        // memmove: an encoder may repeat part of its own buffer. No bytes may have no address, which it
        // forbids.
        if (place != nullptr and !bytes.empty()) std::memmove(place, bytes.data(), bytes.size());
    }

    void put_zeros(std::size_t length) noexcept {
        std::byte* const place = advance(length);
        if (place != nullptr and length != 0) std::memset(place, 0, length);
    }

    /// Pads with zeros to the next multiple of `alignment`, a power of two, counted from where the writer
    /// began.
    void align_to(std::size_t alignment) noexcept {
        ENSURE(std::has_single_bit(alignment));
        put_zeros(-position_ & (alignment - 1));
    }

    /// Leaves room, zero for now, for a field that is known only later.
    template <wire_type T>
    [[nodiscard]] reserved_field<T> reserve() noexcept {
        const reserved_field<T> field(position_);
        put_zeros(sizeof(T));
        return field;
    }

    /// Fills `field`, which this writer reserved. Does nothing once overflowed: there may be no such room.
    template <wire_type T>
    void patch(reserved_field<T> field, const T& wire) noexcept {
        if (overflowed_) return;
        ENSURE(field.position_ <= position_ and sizeof(T) <= position_ - field.position_,
               "a field of another writer");
        std::memcpy(room_.data() + field.position_, &wire, sizeof(T));
    }

    /// The next `length` bytes, for the caller to fill, every one of them: they hold whatever the buffer
    /// held. Nothing if they do not fit, and then the writer has overflowed.
    [[nodiscard]] std::optional<mutable_bytes> claim(std::size_t length) noexcept {
        std::byte* const place = advance(length);
        if (overflowed_) return std::nullopt;
        return mutable_bytes(place, length);
    }

private:
    // Null if `length` bytes do not fit (or the room has no address and none were asked for).
    std::byte* advance(std::size_t length) noexcept {
        if (overflowed_ or length > room_.size() - position_) {
            overflowed_ = true;
            return nullptr;
        }
        std::byte* const place = room_.data() + position_;
        position_ += length;
        return place;
    }

    mutable_bytes room_;
    std::size_t position_ = 0;
    bool overflowed_ = false;
};

}  // namespace sluice

#pragma once

#include <bit>

#include "sluice/base/bytes.hpp"

namespace sluice {

/// Reads untrusted bytes from front to back. A step that does not fit consumes nothing and reports
/// that, so that a decoder can try another interpretation. Owns nothing, like bytes_view.
/// Allocates: nothing. Thread safety: none.
class byte_reader {
public:
    constexpr explicit byte_reader(bytes_view bytes) noexcept : bytes_(bytes) {}

    /// Return the number of bytes consumed and of bytes left.
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

    /// Returns a view of the next `length` bytes.
    [[nodiscard]] constexpr std::optional<bytes_view> take_bytes(std::uint64_t length) noexcept {
        const std::optional<bytes_view> taken = rest().first(length);
        if (taken) position_ += taken->size();
        return taken;
    }

    /// Skips to the next multiple of `alignment`, a power of two, counted from the start of the
    /// reader. Returns false if the bytes end before. That need not be an error: padding is often
    /// absent after the last element of a list.
    [[nodiscard]] constexpr bool align_to(std::size_t alignment) noexcept {
        ENSURE(std::has_single_bit(alignment));
        return skip(-position_ & (alignment - 1));
    }

private:
    bytes_view bytes_;
    std::size_t position_ = 0;
};

/// A field reserved by the writer, to be patched once its value is known.
template <wire_type T>
class reserved_field {
    friend class byte_writer;
    explicit reserved_field(std::size_t position) noexcept : position_(position) {}
    std::size_t position_;
};

/// Writes from front to back into the caller's bytes. A value that does not fit is not written, nor
/// are later ones, and the writer records that: an encoder writes everything and checks once, with
/// finish(). The buffer outlives the writer. Allocates: nothing. Thread safety: none.
///
/// Invariant: every byte before `position_` has been written, or was returned by claim(); none
/// after it.
class byte_writer {
public:
    constexpr explicit byte_writer(mutable_bytes room) noexcept : room_(room) {}

    /// Returns the position of the next byte. It stays constant after an overflow, when lengths
    /// computed from it do not matter any more.
    [[nodiscard]] constexpr std::size_t position() const noexcept { return position_; }
    [[nodiscard]] constexpr bool overflowed() const noexcept { return overflowed_; }

    /// Returns the written bytes, or std::nullopt if they did not fit.
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
        // memmove: an encoder may repeat a part of its own buffer. Its pointers must not be null,
        // but those of empty bytes may be.
        if (place != nullptr and !bytes.empty()) std::memmove(place, bytes.data(), bytes.size());
    }

    void put_zeros(std::size_t length) noexcept {
        std::byte* const place = advance(length);
        if (place != nullptr and length != 0) std::memset(place, 0, length);
    }

    /// Pads with zeros to the next multiple of `alignment`, a power of two, counted from the start
    /// of the writer.
    void align_to(std::size_t alignment) noexcept {
        ENSURE(std::has_single_bit(alignment));
        put_zeros(-position_ & (alignment - 1));
    }

    /// Reserves space, initially zero, for a field whose value is known only later.
    template <wire_type T>
    [[nodiscard]] reserved_field<T> reserve() noexcept {
        const reserved_field<T> field(position_);
        put_zeros(sizeof(T));
        return field;
    }

    /// Writes the value of `field`, which this writer reserved. Does nothing after an overflow: the
    /// space may not exist.
    template <wire_type T>
    void patch(reserved_field<T> field, const T& wire) noexcept {
        if (overflowed_) return;
        ENSURE(field.position_ <= position_ and sizeof(T) <= position_ - field.position_,
               "a field of another writer");
        std::memcpy(room_.data() + field.position_, &wire, sizeof(T));
    }

    /// Returns the next `length` bytes. The caller must write every one of them, because they have
    /// the buffer's old content. Returns std::nullopt if they do not fit, and then the writer has
    /// overflowed.
    [[nodiscard]] std::optional<mutable_bytes> claim(std::size_t length) noexcept {
        std::byte* const place = advance(length);
        if (overflowed_) return std::nullopt;
        return mutable_bytes(place, length);
    }

private:
    // Returns null if `length` bytes do not fit (or the buffer has no address and `length` is
    // zero).
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

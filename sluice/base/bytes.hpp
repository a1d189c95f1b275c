#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "sluice/base/ensure.hpp"

// Untrusted bytes, and their safe decoding.
//
// Every failure here has one cause, "outside", and is reported by an empty optional or false. An
// error code would have to be translated at once: only the decoder knows the meaning of the failure
// (truncated header, bad data offset), and its own enum states it.

namespace sluice {

/// A part of a buffer as stated in a message; neither number is trusted.
struct byte_extent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Return the sum and the product in 64 bits, or std::nullopt if they do not fit.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

/// A type that can be copied from and to raw bytes: every bit pattern is a value, at any address.
/// Alignment 1 allows structs of endian fields and byte arrays. It excludes integers in the
/// machine's byte order, pointers, and structs with padding, whose bytes would leak.
template <class T>
concept wire_type = std::is_trivially_copyable_v<T> and std::default_initializable<T> and alignof(T) == 1 and
                    !std::same_as<T, bool> and !std::is_enum_v<T>;

/// A view of bytes, with checks wherever an offset or a length comes from outside. `bytes_view`
/// reads; `mutable_bytes` also writes, for changes in place (decryption, a signature field). Owns
/// nothing: the buffer outlives the view and all views derived from it. Allocates: nothing.
/// Complexity: O(1), take O(sizeof(T)). Thread safety: a value; the owner of the bytes synchronises
/// access.
template <class Byte>
class basic_bytes {
public:
    static_assert(std::same_as<std::remove_const_t<Byte>, std::byte>);

    constexpr basic_bytes() noexcept = default;
    constexpr basic_bytes(Byte* data, std::size_t size) noexcept : data_(data), size_(size) {}

    /// Converts from the same types as a span: arrays, vectors, spans of std::byte; mutable to
    /// const.
    template <class Source>
        requires(!std::same_as<std::remove_cvref_t<Source>, basic_bytes> and
                 std::convertible_to<Source, std::span<Byte>>)
    constexpr basic_bytes(Source&& source) noexcept  // NOLINT: meant to convert
        : basic_bytes(std::span<Byte>(static_cast<Source&&>(source))) {}
    constexpr basic_bytes(std::span<Byte> bytes) noexcept  // NOLINT: meant to convert
        : data_(bytes.data()), size_(bytes.size()) {}

    [[nodiscard]] constexpr Byte* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] constexpr Byte* begin() const noexcept { return data_; }
    [[nodiscard]] constexpr Byte* end() const noexcept { return data_ + size_; }
    [[nodiscard]] constexpr std::span<Byte> span() const noexcept { return {data_, size_}; }

    /// Returns the byte at an index that the caller has checked; an index outside stops the
    /// program.
    [[nodiscard]] constexpr Byte& operator[](std::size_t index) const noexcept {
        ENSURE(index < size_);
        return data_[index];
    }

    /// Returns the part at `extent`, or std::nullopt if any of it is outside. The only place that
    /// combines an untrusted offset with an untrusted length: subtracting a number that is known to
    /// fit cannot wrap, but adding the two could.
    [[nodiscard]] constexpr std::optional<basic_bytes> slice(byte_extent extent) const noexcept {
        if (extent.offset > size_) return std::nullopt;
        if (extent.length > size_ - extent.offset) return std::nullopt;
        // Neither exceeds size_, so both fit size_t, 32 bits wide or 64.
        return basic_bytes(data_ + static_cast<std::size_t>(extent.offset),
                           static_cast<std::size_t>(extent.length));
    }
    /// Returns the first `length` bytes, or std::nullopt if there are fewer.
    [[nodiscard]] constexpr std::optional<basic_bytes> first(std::uint64_t length) const noexcept {
        return slice({.offset = 0, .length = length});
    }
    /// Returns all bytes from `offset` on, possibly none, or std::nullopt if `offset` is outside.
    [[nodiscard]] constexpr std::optional<basic_bytes> from(std::uint64_t offset) const noexcept {
        if (offset > size_) return std::nullopt;
        return slice({.offset = offset, .length = size_ - offset});
    }

    /// Copies the `T` at the front, or returns std::nullopt if there are too few bytes. A copy,
    /// because the buffer need not be aligned, does not contain a `T` according to the language,
    /// and might change after the check.
    template <wire_type T>
    [[nodiscard]] std::optional<T> take() const noexcept {
        if (sizeof(T) > size_) return std::nullopt;
        T copy;
        std::memcpy(&copy, data_, sizeof(T));
        return copy;
    }
    /// The same at `offset`.
    template <wire_type T>
    [[nodiscard]] std::optional<T> take_at(std::uint64_t offset) const noexcept {
        const auto part = slice({.offset = offset, .length = sizeof(T)});
        if (!part) return std::nullopt;
        return part->template take<T>();
    }

    /// Compares the bytes, not their addresses. Complexity: linear.
    [[nodiscard]] friend constexpr bool operator==(basic_bytes a, basic_bytes b) noexcept {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    Byte* data_ = nullptr;
    std::size_t size_ = 0;
};

using bytes_view = basic_bytes<const std::byte>;
using mutable_bytes = basic_bytes<std::byte>;

/// Returns the bytes of a wire struct, which must outlive the view.
template <wire_type T>
[[nodiscard]] bytes_view bytes_of(const T& wire) noexcept {
    return {reinterpret_cast<const std::byte*>(&wire), sizeof(T)};
}
template <wire_type T>
void bytes_of(const T&& temporary) = delete;

}  // namespace sluice

/// @cond
// Views are as cheap to copy as spans, and as safe to keep iterators of.
template <class Byte>
inline constexpr bool std::ranges::enable_borrowed_range<sluice::basic_bytes<Byte>> = true;
template <class Byte>
inline constexpr bool std::ranges::enable_view<sluice::basic_bytes<Byte>> = true;
/// @endcond

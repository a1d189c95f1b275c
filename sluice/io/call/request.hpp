#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "sluice/base/result.hpp"

namespace sluice::io {

/// An offset into, or a length of, a seekable handle, in bytes.
using extent_type = std::uint64_t;

/// A segment of memory to read into. It has the layout of `iovec`, so a span of segments is passed
/// to the kernel unchanged.
class buffer {
public:
    constexpr buffer() noexcept = default;
    constexpr buffer(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr buffer(std::span<std::byte> bytes) noexcept  // NOLINT: meant to convert
        : buffer(bytes.data(), bytes.size()) {}

    [[nodiscard]] constexpr std::byte* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A segment of memory to write from. It has the layout of `iovec`.
class const_buffer {
public:
    constexpr const_buffer() noexcept = default;
    constexpr const_buffer(const std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
    constexpr const_buffer(std::span<const std::byte> bytes) noexcept  // NOLINT: meant to convert
        : const_buffer(bytes.data(), bytes.size()) {}
    constexpr const_buffer(std::span<std::byte> bytes) noexcept  // NOLINT: converts, after a read
        : const_buffer(bytes.data(), bytes.size()) {}
    constexpr const_buffer(buffer b) noexcept  // NOLINT: meant to convert
        : const_buffer(b.data(), b.size()) {}

    [[nodiscard]] constexpr const std::byte* data() const noexcept { return data_; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

static_assert(sizeof(buffer) == sizeof(void*) + sizeof(std::size_t) and std::is_standard_layout_v<buffer>);
static_assert(sizeof(const_buffer) == sizeof(buffer) and std::is_standard_layout_v<const_buffer>);

/// Scatter and gather lists. They, and the memory they refer to, belong to the caller until the
/// operation is done.
using buffers_type = std::span<buffer>;
using const_buffers_type = std::span<const_buffer>;

/// The common case of one buffer, without a list to keep alive.
using bytes_type = std::span<std::byte>;
using const_bytes_type = std::span<const std::byte>;

/// The buffers of a request: a scatter list or one segment to read into, or a gather list or one
/// segment to write from.
template <class Buffers>
concept read_buffers = std::is_same_v<Buffers, buffers_type> or std::is_same_v<Buffers, bytes_type>;
template <class Buffers>
concept write_buffers =
    std::is_same_v<Buffers, const_buffers_type> or std::is_same_v<Buffers, const_bytes_type>;

/// No offset: a transfer of a file without one fails with EINVAL, instead of reading or overwriting
/// the start of the file. Not the greatest number, which the kernel uses for the file's current
/// position.
inline constexpr extent_type no_offset = ~extent_type{1};

/// A transfer: buffers and an offset. Pipes and sockets, and writes to an append-only file, ignore
/// the offset; everything else needs one.
template <class Buffers>
struct io_request {
    Buffers buffers{};
    extent_type offset = no_offset;
};

/// Returns the bytes of a list, or of one segment. Complexity: linear in the number of buffers.
template <class Buffers>
[[nodiscard]] constexpr std::size_t bytes_in(const Buffers& buffers) noexcept {
    if constexpr (requires { buffers[0].size(); }) {
        std::size_t total = 0;
        for (const auto& piece : buffers)
            total += piece.size();
        return total;
    } else {
        return buffers.size();
    }
}

/// The buffers that an operation filled or drained, or its error.
///
/// The buffers may be fewer and shorter than those of the request (a partial transfer), and may be
/// elsewhere (a mapped file returns its own pages for a read): use the returned ones. No bytes from
/// a read of a non-empty request mean end of file.
template <class Buffers>
class [[nodiscard]] io_result : public result<Buffers> {
public:
    using result<Buffers>::result;

    /// Returns the bytes read or written; 0 if the operation failed. Complexity: linear in the
    /// number of buffers.
    [[nodiscard]] constexpr std::size_t bytes_transferred() const noexcept {
        return this->has_value() ? bytes_in(**this) : 0;
    }
};

/// The bytes that a transfer moves before it ends: all, or the result of one system call. A read of
/// a stream always ends with some.
enum class amount : bool { some, all };

/// The data that a barrier makes durable, and whether it waits until that is done. P2052 (and POSIX
/// fdatasync, fsync).
enum class barrier_kind : std::uint8_t {
    nowait_data_only,  ///< start writing data back; return without waiting
    wait_data_only,    ///< data, and the metadata that is needed to find it, is on the device
    nowait_all,        ///< start writing back everything; Linux has no weaker form
                       ///< than nowait_data_only
    wait_all,          ///< data and all metadata are on the device
};

namespace detail {

// Shortens a list of buffers, in place, to the bytes transferred.
template <class Piece>
std::span<Piece> shortened(std::span<Piece> pieces, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (bytes < pieces[i].size()) {
            if (bytes == 0) return pieces.first(i);
            pieces[i] = Piece(pieces[i].data(), bytes);
            return pieces.first(i + 1);
        }
        bytes -= pieces[i].size();
    }
    return pieces;
}

}  // namespace detail

}  // namespace sluice::io

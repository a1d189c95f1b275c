#include "sluice/io/handle/io_handle.hpp"

#include <cerrno>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/engine.hpp"

namespace sluice::io {

void io_handle::assume_in_memory(bool is_in_memory) noexcept {
    ENSURE(detail::handle_access::registered(*this) == nullptr,
           "the multiplexer has read this setting already: call before set_multiplexer()");
    native_.in_memory = is_in_memory;
}

namespace {

template <class Piece>
io_result<std::span<Piece>> transfer_list(const native_handle& native, io_request<std::span<Piece>>& request,
                                          deadline within, amount wanted = amount::all) noexcept {
    constexpr direction which = read_buffers<std::span<Piece>> ? direction::in : direction::out;
    // buffer and const_buffer have one layout, that of iovec.
    const std::span pieces(reinterpret_cast<const buffer*>(request.buffers.data()), request.buffers.size());
    const auto moved = transfer_blocking(native, which, pieces, request.offset, within, wanted);
    if (not moved) [[unlikely]]
        return failure(moved.error());
    return detail::shortened(request.buffers, *moved);
}

// Nearly every call is one segment without a deadline, and usually takes one system call.
template <class Byte>
io_result<std::span<Byte>> transfer_bytes(const native_handle& native,
                                          const io_request<std::span<Byte>>& request,
                                          deadline within) noexcept {
    constexpr direction which = read_buffers<std::span<Byte>> ? direction::in : direction::out;
    const std::size_t size = request.buffers.size();
    buffer piece(const_cast<std::byte*>(request.buffers.data()), size);
    std::size_t moved = 0;
    if (within.is_none()) [[likely]] {
        const std::ptrdiff_t first =
            checked_outcome(transfer_piece(native, which, piece, request.offset, wait::yes), size);
        const bool takes_any = which == direction::in and native.kind != handle_kind::file;
        if (first == static_cast<std::ptrdiff_t>(size) or (first >= 0 and takes_any)) [[likely]] {
            return request.buffers.first(static_cast<std::size_t>(first));
        }
        if (first < 0 and first != -EAGAIN and first != -EINTR) {
            const bool lacks_offset =
                first == -EINVAL and request.offset == no_offset and native.kind == handle_kind::file;
            const char* const name = which == direction::in ? "read" : "write";
            return failure(
                {static_cast<int>(-first), lacks_offset ? without_offset(which) : name, native.descriptor});
        }
        if (first > 0) moved = static_cast<std::size_t>(first);
        piece = {piece.data() + moved, size - moved};
    }
    const auto rest =
        transfer_blocking(native, which, {&piece, 1}, request.offset + moved, within, amount::all);
    if (not rest and moved == 0) return failure(rest.error());
    ENSURE(rest.value_or(0) <= piece.size(), "more was moved than was left");
    return request.buffers.first(moved + rest.value_or(0));
}

}  // namespace

io_result<buffers_type> io_handle::read(io_request<buffers_type> request, deadline within) noexcept {
    return transfer_list(native_, request, within);
}

io_result<bytes_type> io_handle::read(io_request<bytes_type> request, deadline within) noexcept {
    return transfer_bytes(native_, request, within);
}

io_result<const_buffers_type> io_handle::write(io_request<const_buffers_type> request,
                                               deadline within) noexcept {
    return transfer_list(native_, request, within);
}

io_result<const_bytes_type> io_handle::write(io_request<const_bytes_type> request, deadline within) noexcept {
    return transfer_bytes(native_, request, within);
}

io_result<const_buffers_type> io_handle::write_some(io_request<const_buffers_type> request,
                                                    deadline within) noexcept {
    return transfer_list(native_, request, within, amount::some);
}

io_result<const_bytes_type> io_handle::write_some(io_request<const_bytes_type> request,
                                                  deadline within) noexcept {
    // A write only reads the buffer.
    const buffer piece(const_cast<std::byte*>(request.buffers.data()), request.buffers.size());
    const auto moved =
        transfer_blocking(native_, direction::out, {&piece, 1}, request.offset, within, amount::some);
    if (not moved) return failure(moved.error());
    return request.buffers.first(*moved);
}

io_result<const_buffers_type> io_handle::barrier(barrier_kind kind, io_request<const_buffers_type> range,
                                                 deadline within) noexcept {
    const auto done = barrier_blocking(native_, kind, barrier_extent(range), within);
    if (not done) return failure(done.error());
    return range.buffers;
}

}  // namespace sluice::io

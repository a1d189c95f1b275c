#pragma once

#include "sluice/io/asio/asio_operation.hpp"

// The adapter's blocking transfers; for its headers, not for users.
namespace sluice::io::detail {

/// With a time limit of zero, a call that would wait fails with would_block.
[[nodiscard]] inline asio::error_code asio_blocked(const error& why, deadline within) noexcept {
    if (within.is_zero() and why.code() == ETIMEDOUT)
        return {EWOULDBLOCK, asio::error::get_system_category()};
    return asio_error(why);
}

template <class Handle, class Buffers>
std::size_t asio_read_now(Handle& handle, const Buffers& buffers, deadline within,
                          asio::error_code& why) noexcept {
    asio_pieces<buffer, Buffers> pieces(buffers);
    why.clear();
    if (pieces.is_empty()) return 0;
    const auto outcome = handle.read(io_request<buffers_type>{pieces.all()}, within);
    const std::size_t count = asio_transferred(outcome, true, why);
    if (not outcome.has_value()) why = asio_blocked(outcome.error(), within);
    return count;
}

template <class Handle, class Buffers>
std::size_t asio_write_now(Handle& handle, const Buffers& buffers, deadline within,
                           asio::error_code& why) noexcept {
    asio_pieces<const_buffer, Buffers> pieces(buffers);
    const auto outcome = handle.write_some(io_request<const_buffers_type>{pieces.all()}, within);
    const std::size_t count = asio_transferred(outcome, false, why);
    if (not outcome.has_value()) why = asio_blocked(outcome.error(), within);
    return count;
}

}  // namespace sluice::io::detail

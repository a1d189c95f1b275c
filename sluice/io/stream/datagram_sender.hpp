#pragma once

#include "sluice/io/call/datagram_call.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/datagram.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

namespace detail {

// The common part of both directions: the memory, and the address.
template <class Buffers>
class datagram_sender : public handle_sender {
public:
    datagram_sender(socket_handle& socket, io_request<Buffers> request, const socket_address& peer,
                    deadline within) noexcept
        : handle_sender(socket, within), request_(request), peer_(peer) {}

protected:
    static constexpr bool is_list =
        std::same_as<Buffers, buffers_type> or std::same_as<Buffers, const_buffers_type>;

    void configure_with(detail::operation_record& op, operation_kind kind) noexcept {
        configure_as(op, kind);
        exchange_ = {.peer = peer_};
        op.argument = &exchange_;
        if constexpr (is_list) {
            // One layout, that of iovec; the kernel only reads the bytes of a send.
            op.pieces = reinterpret_cast<const buffer*>(request_.buffers.data());
            op.piece_count = static_cast<std::uint32_t>(request_.buffers.size());
        } else {
            single_ = {const_cast<std::byte*>(request_.buffers.data()), request_.buffers.size()};
            op.pieces = &single_;
            op.piece_count = 1;
        }
    }

    io_request<Buffers> request_;
    socket_address peer_;
    datagram_request exchange_;
    buffer single_;
};

}  // namespace detail

/// The sender of async_recvfrom: receives one datagram.
template <read_buffers Buffers>
class recvfrom_sender : public detail::datagram_sender<Buffers> {
public:
    using result_type = result<received_datagram<Buffers>>;

    recvfrom_sender(socket_handle& socket, io_request<Buffers> request, deadline within) noexcept
        : detail::datagram_sender<Buffers>(socket, request, {}, within) {}

    void configure(operation& configured) noexcept {
        this->configure_with(detail::record_of(configured), operation_kind::receive_from);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0)
            return failure(datagram_error(op.error_code, op.target->native, direction::in, this->exchange_));
        Buffers kept = this->request_.buffers;
        if constexpr (detail::datagram_sender<Buffers>::is_list) {
            kept = detail::shortened(kept, op.transferred);
        } else {
            kept = kept.first(op.transferred);
        }
        return received_datagram<Buffers>{.buffers = kept,
                                          .peer = this->exchange_.peer,
                                          .message_bytes = this->exchange_.message_bytes,
                                          .is_end = this->exchange_.is_end};
    }
};

/// The sender of async_sendto: sends one datagram.
template <write_buffers Buffers>
class sendto_sender : public detail::datagram_sender<Buffers> {
public:
    using result_type = io_result<Buffers>;
    using detail::datagram_sender<Buffers>::datagram_sender;

    void configure(operation& configured) noexcept {
        this->configure_with(detail::record_of(configured), operation_kind::send_to);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0)
            return failure(datagram_error(op.error_code, op.target->native, direction::out, this->exchange_));
        return this->request_.buffers;
    }
};

/// Senders of socket_handle::recvfrom and sendto; their errors apply, and ECANCELED. async_sendto
/// fails with EAGAIN where sendto would wait for the receiver's queue, that of a Unix socket: the
/// kernel has no wait for that without blocking, so send again later. The memory and the socket
/// must outlive the operation. Every multiplexer supports them.
[[nodiscard]] inline auto async_recvfrom(socket_handle& from, io_request<bytes_type> request,
                                         deadline within = {}) noexcept {
    return recvfrom_sender<bytes_type>(from, request, within);
}
[[nodiscard]] inline auto async_recvfrom(socket_handle& from, io_request<buffers_type> request,
                                         deadline within = {}) noexcept {
    return recvfrom_sender<buffers_type>(from, request, within);
}
[[nodiscard]] inline auto async_sendto(socket_handle& from, io_request<const_bytes_type> request,
                                       const socket_address& to, deadline within = {}) noexcept {
    return sendto_sender<const_bytes_type>(from, request, to, within);
}
[[nodiscard]] inline auto async_sendto(socket_handle& from, io_request<const_buffers_type> request,
                                       const socket_address& to, deadline within = {}) noexcept {
    return sendto_sender<const_buffers_type>(from, request, to, within);
}

/// The awaitable form. Suspends: unless it completes at once.
template <read_buffers Buffers>
[[nodiscard]] auto co_recvfrom(socket_handle& from, io_request<Buffers> request,
                               deadline within = {}) noexcept {
    return async_recvfrom(from, request, within);
}
template <write_buffers Buffers>
[[nodiscard]] auto co_sendto(socket_handle& from, io_request<Buffers> request, const socket_address& to,
                             deadline within = {}) noexcept {
    return async_sendto(from, request, to, within);
}

}  // namespace sluice::io

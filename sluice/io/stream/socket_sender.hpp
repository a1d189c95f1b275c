#pragma once

#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

/// The sender of async_accept: accepts the next connection.
class accept_sender : public detail::handle_sender {
public:
    using result_type = result<accepted>;

    accept_sender(listening_socket_handle& listener, deadline within) noexcept
        : handle_sender(listener, within) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::accept);
        op.argument = &peer_;
    }
    /// The descriptor is owned from here on: a receiver that drops the result
    /// closes the connection.
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, "accept"));
        const auto descriptor = static_cast<int>(op.transferred);
        return accepted{.socket = socket_handle(describe_socket(descriptor, op.target->native.stream)),
                        .peer = peer_};
    }

private:
    socket_address peer_;
};

/// The sender of async_connect: connects a socket.
class connect_sender : public detail::handle_sender {
public:
    using result_type = result<void>;

    connect_sender(socket_handle& socket, const socket_address& peer, deadline within) noexcept
        : handle_sender(socket, within), peer_(peer) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::connect);
        op.argument = &peer_;
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(address_error(op.error_code, "connect", peer_));
        return {};
    }

private:
    socket_address peer_;
};

/// Senders of listening_socket_handle::accept and socket_handle::connect_to; their errors apply. In
/// addition: ECANCELED; and EAGAIN at once where connect_to would wait for a slot in the queue of a
/// Unix listener. The kernel has no wait for that except a blocking call: try again later. The
/// handles must outlive the operation.
[[nodiscard]] inline auto async_accept(listening_socket_handle& from, deadline within = {}) noexcept {
    return accept_sender(from, within);
}
[[nodiscard]] inline auto async_connect(socket_handle& socket, const socket_address& peer,
                                        deadline within = {}) noexcept {
    return connect_sender(socket, peer, within);
}

/// The awaitable form.
[[nodiscard]] inline auto co_accept(listening_socket_handle& from, deadline within = {}) noexcept {
    return async_accept(from, within);
}
[[nodiscard]] inline auto co_connect(socket_handle& socket, const socket_address& peer,
                                     deadline within = {}) noexcept {
    return async_connect(socket, peer, within);
}

}  // namespace sluice::io

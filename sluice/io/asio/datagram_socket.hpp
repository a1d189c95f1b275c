#pragma once

#include <asio/any_io_executor.hpp>

#include "sluice/io/asio/message.hpp"
#include "sluice/io/asio/socket.hpp"
#include "sluice/io/asio/transfers.hpp"
#include "sluice/io/stream/datagram_sender.hpp"

namespace sluice::io {

namespace detail {

/// Returns how many bytes of a datagram were stored. Stores its sender unless `peer` is null.
template <class Endpoint>
std::size_t asio_received(const received_datagram<buffers_type>& from, Endpoint* peer) {
    if (peer != nullptr) *peer = endpoint_of<Endpoint>(from.peer);
    return bytes_in(from.buffers);
}

/// Receives a datagram, and stores its sender unless `peer` is null.
template <class Buffers, class Endpoint>
class asio_receive_from : public asio_handle_work<socket_handle> {
public:
    struct argument {
        Buffers buffers;
        Endpoint* peer;
    };
    asio_receive_from(asio_core<socket_handle>& core, const argument& from) noexcept
        : asio_handle_work(core), peer_(from.peer), pieces_(from.buffers) {}
    [[nodiscard]] auto sender() noexcept {
        return async_recvfrom(handle(), io_request<buffers_type>{pieces_.all()});
    }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(refused(), std::size_t{0}); }
    [[nodiscard]] auto finish(result<received_datagram<buffers_type>>&& outcome) {
        if (not outcome) return std::tuple(asio_error(outcome.error()), std::size_t{0});
        return std::tuple(asio::error_code(), asio_received(*outcome, peer_));
    }

private:
    Endpoint* peer_;
    asio_pieces<buffer, Buffers> pieces_;
};

template <class Buffers>
class asio_send_to : public asio_handle_work<socket_handle> {
public:
    struct argument {
        Buffers buffers;
        socket_address to;  // unspecified: the connected peer
    };
    asio_send_to(asio_core<socket_handle>& core, const argument& from) noexcept
        : asio_handle_work(core), to_(from.to), pieces_(from.buffers) {}
    [[nodiscard]] auto sender() noexcept {
        return async_sendto(handle(), io_request<const_buffers_type>{pieces_.all()}, to_);
    }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(refused(), std::size_t{0}); }
    template <class Result>
    [[nodiscard]] static auto finish(Result&& outcome) noexcept {
        asio::error_code why;
        const std::size_t count = asio_transferred(outcome, false, why);
        return std::tuple(why, count);
    }

private:
    socket_address to_;
    asio_pieces<const_buffer, Buffers> pieces_;
};

}  // namespace detail

namespace asio_names {

/// Asio's basic_datagram_socket on our multiplexer: for UDP, and for local::datagram_protocol. A
/// datagram that is longer than the buffers is truncated without an error, as Asio does on Linux.
/// The kernel checks message flags. Completion, cancellation and allocation are those of
/// asio_stream.
template <class Protocol, class Executor = asio::any_io_executor>
class basic_datagram_socket : public basic_socket<Protocol, Executor> {
    using base = basic_socket<Protocol, Executor>;
    using transferred = void(asio::error_code, std::size_t);

public:
    using typename base::endpoint_type;
    using typename base::executor_type;
    using typename base::protocol_type;
    using message_flags = asio::socket_base::message_flags;
    template <class Other>
    struct rebind_executor {
        using other = basic_datagram_socket<Protocol, Other>;
    };

    using base::base;
    basic_datagram_socket(basic_datagram_socket&&) noexcept = default;
    basic_datagram_socket& operator=(basic_datagram_socket&&) noexcept = default;
    template <class Other>
        requires std::convertible_to<Other, Executor>
    basic_datagram_socket(
        basic_datagram_socket<Protocol, Other>&& other) noexcept  // NOLINT: meant to convert
        : base(std::move(other)) {}

    /// void(asio::error_code, std::size_t): one datagram. The endpoint outlives the operation.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_receive_from(const Buffers& buffers, endpoint_type& peer, Token&& token = Token()) {
        return receive_later(buffers, &peer, token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_receive(const Buffers& buffers, Token&& token = Token()) {
        return receive_later(buffers, nullptr, token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_send_to(const Buffers& buffers, const endpoint_type& peer, Token&& token = Token()) {
        return send_later(buffers, detail::address_of(peer), token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_send(const Buffers& buffers, Token&& token = Token()) {
        return send_later(buffers, socket_address(), token);
    }

    /// Blocks: until a datagram has arrived; until the socket accepts one.
    template <class Buffers>
    std::size_t receive_from(const Buffers& buffers, endpoint_type& peer, asio::error_code& why) {
        return receive_now(buffers, &peer, why);
    }
    template <class Buffers>
    std::size_t receive_from(const Buffers& buffers, endpoint_type& peer) {
        return detail::asio_or_throw("receive_from",
                                     [&](asio::error_code& why) { return receive_now(buffers, &peer, why); });
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers, asio::error_code& why) {
        return receive_now(buffers, nullptr, why);
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers) {
        return detail::asio_or_throw(
            "receive", [&](asio::error_code& why) { return receive_now(buffers, nullptr, why); });
    }
    template <class Buffers>
    std::size_t send_to(const Buffers& buffers, const endpoint_type& peer, asio::error_code& why) {
        return send_now(buffers, detail::address_of(peer), why);
    }
    template <class Buffers>
    std::size_t send_to(const Buffers& buffers, const endpoint_type& peer) {
        return detail::asio_or_throw("send_to",
                                     [&](asio::error_code& why) { return send_to(buffers, peer, why); });
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers, asio::error_code& why) {
        return send_now(buffers, socket_address(), why);
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers) {
        return detail::asio_or_throw("send", [&](asio::error_code& why) { return send(buffers, why); });
    }

    /// With message flags: message_peek leaves the datagram in the queue.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_receive_from(const Buffers& buffers, endpoint_type& peer, message_flags flags,
                            Token&& token = Token()) {
        return message_later<buffer>(receiving(buffers, flags, &peer), token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_receive(const Buffers& buffers, message_flags flags, Token&& token = Token()) {
        return message_later<buffer>(receiving(buffers, flags, nullptr), token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_send_to(const Buffers& buffers, const endpoint_type& peer, message_flags flags,
                       Token&& token = Token()) {
        return message_later<const_buffer>(sending(buffers, flags, detail::address_of(peer)), token);
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_send(const Buffers& buffers, message_flags flags, Token&& token = Token()) {
        return message_later<const_buffer>(sending(buffers, flags, {}), token);
    }
    template <class Buffers>
    std::size_t receive_from(const Buffers& buffers, endpoint_type& peer, message_flags flags,
                             asio::error_code& why) {
        return message_now<buffer>(receiving(buffers, flags, &peer), why);
    }
    template <class Buffers>
    std::size_t receive_from(const Buffers& buffers, endpoint_type& peer, message_flags flags) {
        return detail::asio_or_throw(
            "receive_from", [&](asio::error_code& why) { return receive_from(buffers, peer, flags, why); });
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers, message_flags flags, asio::error_code& why) {
        return message_now<buffer>(receiving(buffers, flags, nullptr), why);
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers, message_flags flags) {
        return detail::asio_or_throw("receive",
                                     [&](asio::error_code& why) { return receive(buffers, flags, why); });
    }
    template <class Buffers>
    std::size_t send_to(const Buffers& buffers, const endpoint_type& peer, message_flags flags,
                        asio::error_code& why) {
        return message_now<const_buffer>(sending(buffers, flags, detail::address_of(peer)), why);
    }
    template <class Buffers>
    std::size_t send_to(const Buffers& buffers, const endpoint_type& peer, message_flags flags) {
        return detail::asio_or_throw(
            "send_to", [&](asio::error_code& why) { return send_to(buffers, peer, flags, why); });
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers, message_flags flags, asio::error_code& why) {
        return message_now<const_buffer>(sending(buffers, flags, {}), why);
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers, message_flags flags) {
        return detail::asio_or_throw("send",
                                     [&](asio::error_code& why) { return send(buffers, flags, why); });
    }

private:
    template <class Buffers>
    [[nodiscard]] static auto receiving(const Buffers& buffers, message_flags flags, endpoint_type* peer) {
        return detail::asio_message_request<Buffers, endpoint_type>{
            .buffers = buffers, .flags = flags, .from = peer};
    }
    template <class Buffers>
    [[nodiscard]] static auto sending(const Buffers& buffers, message_flags flags, const socket_address& to) {
        return detail::asio_message_request<Buffers, endpoint_type>{
            .buffers = buffers, .flags = flags, .to = to};
    }
    template <class Piece, class Buffers, class Token>
    auto message_later(const detail::asio_message_request<Buffers, endpoint_type>& asked, Token& token) {
        using work = detail::asio_message<Piece, Buffers, endpoint_type>;
        return detail::asio_initiate<transferred, work>(this->core_in_use(), this->executor_, token, asked);
    }
    template <class Piece, class Buffers>
    std::size_t message_now(const detail::asio_message_request<Buffers, endpoint_type>& asked,
                            asio::error_code& why) {
        return detail::asio_message_now<Piece>(this->handle().native(), asked, not this->non_blocking(), why);
    }
    template <class Buffers, class Token>
    auto receive_later(const Buffers& buffers, endpoint_type* peer, Token& token) {
        using work = detail::asio_receive_from<Buffers, endpoint_type>;
        return detail::asio_initiate<transferred, work>(this->core_in_use(), this->executor_, token,
                                                        typename work::argument{buffers, peer});
    }
    template <class Buffers, class Token>
    auto send_later(const Buffers& buffers, const socket_address& to, Token& token) {
        using work = detail::asio_send_to<Buffers>;
        return detail::asio_initiate<transferred, work>(this->core_in_use(), this->executor_, token,
                                                        typename work::argument{buffers, to});
    }
    template <class Buffers>
    std::size_t receive_now(const Buffers& buffers, endpoint_type* peer, asio::error_code& why) {
        detail::asio_pieces<buffer, Buffers> pieces(buffers);
        auto outcome = this->handle().recvfrom(io_request<buffers_type>{pieces.all()}, this->time_limit());
        why = outcome.has_value() ? asio::error_code()
                                  : detail::asio_blocked(outcome.error(), this->time_limit());
        return why ? 0 : detail::asio_received(*outcome, peer);
    }
    template <class Buffers>
    std::size_t send_now(const Buffers& buffers, const socket_address& to, asio::error_code& why) {
        detail::asio_pieces<const_buffer, Buffers> pieces(buffers);
        const auto outcome =
            this->handle().sendto(io_request<const_buffers_type>{pieces.all()}, to, this->time_limit());
        const std::size_t count = detail::asio_transferred(outcome, false, why);
        if (not outcome.has_value()) why = detail::asio_blocked(outcome.error(), this->time_limit());
        return count;
    }
};

}  // namespace asio_names
}  // namespace sluice::io

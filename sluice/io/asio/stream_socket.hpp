#pragma once

#include <asio/any_io_executor.hpp>
#include <concepts>

#include "sluice/io/asio/message.hpp"
#include "sluice/io/asio/socket.hpp"
#include "sluice/io/asio/stream_object.hpp"

namespace sluice::io::asio_names {

/// Asio's basic_stream_socket on our multiplexer: for TCP, and for local::stream_protocol.
/// Completion, cancellation and allocation are those of asio_stream.
template <class Protocol, class Executor = asio::any_io_executor>
class basic_stream_socket : public stream_object<basic_socket<Protocol, Executor>> {
    using base = stream_object<basic_socket<Protocol, Executor>>;

public:
    using typename base::endpoint_type;
    using typename base::executor_type;
    using typename base::protocol_type;
    using message_flags = asio::socket_base::message_flags;
    template <class Other>
    struct rebind_executor {
        using other = basic_stream_socket<Protocol, Other>;
    };

    using base::base;
    basic_stream_socket(basic_stream_socket&&) noexcept = default;
    basic_stream_socket& operator=(basic_stream_socket&&) noexcept = default;
    template <class Other>
        requires std::convertible_to<Other, Executor>
    basic_stream_socket(basic_stream_socket<Protocol, Other>&& other) noexcept  // NOLINT: converts
        : base(std::move(other)) {}

    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_receive(const Buffers& buffers, Token&& token = Token()) {
        return this->async_read_some(buffers, std::forward<Token>(token));
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
        requires(not std::convertible_to<Token, message_flags>)
    auto async_send(const Buffers& buffers, Token&& token = Token()) {
        return this->async_write_some(buffers, std::forward<Token>(token));
    }
    /// With message flags: message_peek leaves the data in place; message_out_of_band receives the
    /// urgent byte, and waits until it comes. The kernel checks the others.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_receive(const Buffers& buffers, message_flags flags, Token&& token = Token()) {
        using work = detail::asio_message<buffer, Buffers, endpoint_type>;
        return detail::asio_initiate<void(asio::error_code, std::size_t), work>(
            this->core_in_use(), this->executor_, token, request(buffers, flags));
    }
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_send(const Buffers& buffers, message_flags flags, Token&& token = Token()) {
        using work = detail::asio_message<const_buffer, Buffers, endpoint_type>;
        return detail::asio_initiate<void(asio::error_code, std::size_t), work>(
            this->core_in_use(), this->executor_, token, request(buffers, flags));
    }

    template <class Buffers>
    std::size_t receive(const Buffers& buffers) {
        return this->read_some(buffers);
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers) {
        return this->write_some(buffers);
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers, message_flags flags, asio::error_code& why) {
        return detail::asio_message_now<buffer>(this->handle().native(), request(buffers, flags),
                                                not this->non_blocking(), why);
    }
    template <class Buffers>
    std::size_t receive(const Buffers& buffers, message_flags flags) {
        return detail::asio_or_throw("receive",
                                     [&](asio::error_code& why) { return receive(buffers, flags, why); });
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers, message_flags flags, asio::error_code& why) {
        return detail::asio_message_now<const_buffer>(this->handle().native(), request(buffers, flags),
                                                      not this->non_blocking(), why);
    }
    template <class Buffers>
    std::size_t send(const Buffers& buffers, message_flags flags) {
        return detail::asio_or_throw("send",
                                     [&](asio::error_code& why) { return send(buffers, flags, why); });
    }

private:
    template <class Buffers>
    [[nodiscard]] static auto request(const Buffers& buffers, message_flags flags) {
        return detail::asio_message_request<Buffers, endpoint_type>{
            .buffers = buffers, .flags = flags, .is_stream = true};
    }
};

}  // namespace sluice::io::asio_names

#pragma once

#include <asio/any_io_executor.hpp>

#include "sluice/io/asio/socket_object.hpp"
#include "sluice/io/stream/socket_sender.hpp"

namespace sluice::io {

namespace detail {

class asio_socket_connect : public asio_handle_work<socket_handle> {
public:
    asio_socket_connect(asio_core<socket_handle>& core, const socket_address& peer) noexcept
        : asio_handle_work(core), peer_(peer) {}
    [[nodiscard]] auto sender() noexcept { return async_connect(handle(), peer_); }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(refused()); }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    socket_address peer_;
};

}  // namespace detail

namespace asio_names {

/// A socket with a peer: Asio's basic_socket, for stream and datagram sockets. See socket_object.
template <class Protocol, class Executor = asio::any_io_executor>
class basic_socket : public socket_object<Protocol, Executor, socket_handle> {
    using base = socket_object<Protocol, Executor, socket_handle>;

public:
    using typename base::endpoint_type;
    using typename base::executor_type;
    using typename base::protocol_type;
    using typename base::shutdown_type;

    explicit basic_socket(const executor_type& executor) : base(executor) {}
    template <asio_execution_context Context>
    explicit basic_socket(Context& context) : base(context.get_executor()) {}
    /// Opens the socket and, given an endpoint, binds it.
    basic_socket(const executor_type& executor, const protocol_type& protocol) : base(executor) {
        this->open(protocol);
    }
    basic_socket(const executor_type& executor, const endpoint_type& local) : base(executor) {
        this->open(local.protocol());
        this->bind(local);
    }
    template <asio_execution_context Context>
    basic_socket(Context& context, const protocol_type& protocol)
        : basic_socket(executor_type(context.get_executor()), protocol) {}
    template <asio_execution_context Context>
    basic_socket(Context& context, const endpoint_type& local)
        : basic_socket(executor_type(context.get_executor()), local) {}
    /// Takes ownership of a descriptor.
    basic_socket(const executor_type& executor, const protocol_type& protocol, int native) : base(executor) {
        this->assign(protocol, native);
    }
    template <asio_execution_context Context>
    basic_socket(Context& context, const protocol_type& protocol, int native)
        : basic_socket(executor_type(context.get_executor()), protocol, native) {}

    [[nodiscard]] endpoint_type remote_endpoint(asio::error_code& why) const {
        why = this->is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        return why ? endpoint_type() : this->ask(peer_address_of(this->core_->handle.native()), why);
    }
    [[nodiscard]] endpoint_type remote_endpoint() const {
        return detail::asio_or_throw("remote_endpoint",
                                     [&](asio::error_code& why) { return remote_endpoint(why); });
    }

    /// Opens the socket first if it is closed. Blocks: until it is connected.
    void connect(const endpoint_type& peer, asio::error_code& why) {
        why.clear();
        open_for(peer, why);
        if (why) return;
        const auto outcome = this->handle().connect_to(detail::address_of(peer));
        if (not outcome) why = detail::asio_error(outcome.error());
    }
    void connect(const endpoint_type& peer) {
        asio::error_code why;
        connect(peer, why);
        detail::asio_throw_if(why, "connect");
    }
    /// void(asio::error_code). Opens the socket first if it is closed.
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_connect(const endpoint_type& peer, Token&& token = Token()) {
        asio::error_code why;  // if it cannot be opened, the operation fails with EBADF
        open_for(peer, why);
        return detail::asio_initiate<void(asio::error_code), detail::asio_socket_connect>(
            this->core_in_use(), this->executor_, token, detail::address_of(peer));
    }

    void shutdown(shutdown_type what, asio::error_code& why) {
        why = detail::asio_called(::shutdown(this->native_handle(), static_cast<int>(what)));
    }
    void shutdown(shutdown_type what) {
        asio::error_code why;
        shutdown(what, why);
        detail::asio_throw_if(why, "shutdown");
    }

    /// Returns how many bytes a read returns without waiting.
    [[nodiscard]] std::size_t available(asio::error_code& why) const {
        int bytes = 0;
        why = detail::asio_called(::ioctl(this->native_handle(), FIONREAD, &bytes));
        return why ? 0 : static_cast<std::size_t>(bytes);
    }
    [[nodiscard]] std::size_t available() const {
        return detail::asio_or_throw("available", [&](asio::error_code& why) { return available(why); });
    }

protected:
    basic_socket(basic_socket&&) noexcept = default;
    basic_socket& operator=(basic_socket&&) noexcept = default;
    // Converts from the same socket with another executor.
    template <class Other>
        requires std::convertible_to<Other, Executor>
    explicit basic_socket(basic_socket<Protocol, Other>&& other) noexcept : base(std::move(other)) {}
    ~basic_socket() = default;

    void open_for(const endpoint_type& peer, asio::error_code& why) {
        if (not this->is_open()) this->open(peer.protocol(), why);
    }
};

}  // namespace asio_names
}  // namespace sluice::io

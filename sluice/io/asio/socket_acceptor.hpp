#pragma once

#include <asio/any_io_executor.hpp>

#include "sluice/io/asio/stream_socket.hpp"

namespace sluice::io {

namespace detail {

/// Accepts a connection, from which `Into` makes the handler's arguments.
template <class Into>
class asio_socket_accept : public asio_handle_work<listening_socket_handle> {
public:
    asio_socket_accept(asio_core<listening_socket_handle>& core, const Into& into)
        : asio_handle_work(core), into_(into) {}
    [[nodiscard]] auto sender() noexcept { return async_accept(handle()); }
    [[nodiscard]] auto nothing() { return into_.fail(refused()); }
    [[nodiscard]] auto finish(result<accepted>&& outcome) {
        return outcome.has_value() ? into_.take(std::move(*outcome))
                                   : into_.fail(asio_error(outcome.error()));
    }

private:
    Into into_;
};

/// Accepts into a new socket, the handler's second argument.
template <class Socket>
struct asio_new_socket {
    typename Socket::executor_type executor;
    typename Socket::endpoint_type* peer;  // may be null

    [[nodiscard]] auto take(accepted&& from) {
        if (peer != nullptr) *peer = endpoint_of<typename Socket::endpoint_type>(from.peer);
        Socket made(executor);
        made.adopt(std::move(from.socket));
        return std::tuple(asio::error_code(), std::move(made));
    }
    [[nodiscard]] auto fail(const asio::error_code& why) { return std::tuple(why, Socket(executor)); }
};

/// Accepts into a closed socket of the caller.
template <class Socket>
struct asio_given_socket {
    Socket* into;
    typename Socket::endpoint_type* peer;  // may be null

    [[nodiscard]] auto take(accepted&& from) {
        if (peer != nullptr) *peer = endpoint_of<typename Socket::endpoint_type>(from.peer);
        into->adopt(std::move(from.socket));
        return std::tuple(asio::error_code());
    }
    [[nodiscard]] static auto fail(const asio::error_code& why) { return std::tuple(why); }
};

}  // namespace detail

namespace asio_names {

/// Asio's basic_socket_acceptor on our multiplexer. See socket_object; completion, cancellation and
/// allocation are those of asio_stream.
template <class Protocol, class Executor = asio::any_io_executor>
class basic_socket_acceptor : public socket_object<Protocol, Executor, listening_socket_handle> {
    using base = socket_object<Protocol, Executor, listening_socket_handle>;
    template <class Any>
    using socket_on = basic_stream_socket<Protocol, Any>;
    template <class Any>
    using any_socket = basic_socket<Protocol, Any>;

public:
    using typename base::endpoint_type;
    using typename base::executor_type;
    using typename base::protocol_type;
    template <class Other>
    struct rebind_executor {
        using other = basic_socket_acceptor<Protocol, Other>;
    };

    explicit basic_socket_acceptor(const executor_type& executor) : base(executor) {}
    template <asio_execution_context Context>
    explicit basic_socket_acceptor(Context& context) : base(context.get_executor()) {}
    basic_socket_acceptor(const executor_type& executor, const protocol_type& protocol) : base(executor) {
        this->open(protocol);
    }
    template <asio_execution_context Context>
    basic_socket_acceptor(Context& context, const protocol_type& protocol)
        : basic_socket_acceptor(executor_type(context.get_executor()), protocol) {}
    /// Opens it, binds it and listens.
    basic_socket_acceptor(const executor_type& executor, const endpoint_type& local,
                          bool reuse_address = true)
        : base(executor) {
        this->open(local.protocol());
        if (reuse_address) this->set_option(typename base::reuse_address(true));
        this->bind(local);
        listen();
    }
    template <asio_execution_context Context>
    basic_socket_acceptor(Context& context, const endpoint_type& local, bool reuse_address = true)
        : basic_socket_acceptor(executor_type(context.get_executor()), local, reuse_address) {}
    /// Takes ownership of a listening descriptor.
    basic_socket_acceptor(const executor_type& executor, const protocol_type& protocol, int native)
        : base(executor) {
        this->assign(protocol, native);
    }
    template <asio_execution_context Context>
    basic_socket_acceptor(Context& context, const protocol_type& protocol, int native)
        : basic_socket_acceptor(executor_type(context.get_executor()), protocol, native) {}
    basic_socket_acceptor(basic_socket_acceptor&&) noexcept = default;
    basic_socket_acceptor& operator=(basic_socket_acceptor&&) noexcept = default;
    template <class Other>
        requires std::convertible_to<Other, Executor>
    basic_socket_acceptor(
        basic_socket_acceptor<Protocol, Other>&& other) noexcept  // NOLINT: meant to convert
        : base(std::move(other)) {}

    void listen(int backlog, asio::error_code& why) {
        why = detail::asio_called(::listen(this->native_handle(), backlog));
    }
    void listen(int backlog = asio::socket_base::max_listen_connections) {
        asio::error_code why;
        listen(backlog, why);
        detail::asio_throw_if(why, "listen");
    }

    /// void(asio::error_code, a socket): on this executor, or on a given one. `peer` gets the
    /// address of the other end.
    template <class Token = asio::default_completion_token_t<executor_type>>
        requires(not asio::execution::is_executor<std::decay_t<Token>>::value and
                 not asio_execution_context<std::decay_t<Token>>)
    auto async_accept(Token&& token = Token()) {
        return accept_new(this->executor_, nullptr, token);
    }
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(endpoint_type& peer, Token&& token = Token()) {
        return accept_new(this->executor_, &peer, token);
    }
    template <class Other, class Token = asio::default_completion_token_t<executor_type>>
        requires(asio::execution::is_executor<Other>::value)
    auto async_accept(const Other& executor, Token&& token = Token()) {
        return accept_new(executor, nullptr, token);
    }
    template <class Other, class Token = asio::default_completion_token_t<executor_type>>
        requires(asio::execution::is_executor<Other>::value)
    auto async_accept(const Other& executor, endpoint_type& peer, Token&& token = Token()) {
        return accept_new(executor, &peer, token);
    }
    template <asio_execution_context Context, class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(Context& context, Token&& token = Token()) {
        return accept_new(context.get_executor(), nullptr, token);
    }
    template <asio_execution_context Context, class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(Context& context, endpoint_type& peer, Token&& token = Token()) {
        return accept_new(context.get_executor(), &peer, token);
    }
    /// void(asio::error_code), into a closed socket that outlives the operation.
    template <class Any, class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(any_socket<Any>& into, Token&& token = Token()) {
        return accept_into(into, nullptr, token);
    }
    template <class Any, class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(any_socket<Any>& into, endpoint_type& peer, Token&& token = Token()) {
        return accept_into(into, &peer, token);
    }

    /// Blocks: until there is a connection.
    template <class Any>
    void accept(any_socket<Any>& into, asio::error_code& why) {
        accept_now(into, nullptr, why);
    }
    template <class Any>
    void accept(any_socket<Any>& into) {
        asio::error_code why;
        accept_now(into, nullptr, why);
        detail::asio_throw_if(why, "accept");
    }
    template <class Any>
    void accept(any_socket<Any>& into, endpoint_type& peer, asio::error_code& why) {
        accept_now(into, &peer, why);
    }
    template <class Any>
    void accept(any_socket<Any>& into, endpoint_type& peer) {
        asio::error_code why;
        accept_now(into, &peer, why);
        detail::asio_throw_if(why, "accept");
    }
    [[nodiscard]] socket_on<executor_type> accept(asio::error_code& why) {
        socket_on<executor_type> made(this->executor_);
        accept_now(made, nullptr, why);
        return made;
    }
    [[nodiscard]] socket_on<executor_type> accept() {
        socket_on<executor_type> made(this->executor_);
        accept(made);
        return made;
    }
    [[nodiscard]] socket_on<executor_type> accept(endpoint_type& peer) {
        socket_on<executor_type> made(this->executor_);
        accept(made, peer);
        return made;
    }

private:
    template <class Other, class Token>
    auto accept_new(const Other& executor, endpoint_type* peer, Token& token) {
        using socket = socket_on<Other>;
        using into = detail::asio_new_socket<socket>;
        return detail::asio_initiate<void(asio::error_code, socket), detail::asio_socket_accept<into>>(
            this->core_in_use(), this->executor_, token, into{executor, peer});
    }
    template <class Socket, class Token>
    auto accept_into(Socket& socket, endpoint_type* peer, Token& token) {
        using into = detail::asio_given_socket<Socket>;
        return detail::asio_initiate<void(asio::error_code), detail::asio_socket_accept<into>>(
            this->core_in_use(), this->executor_, token, into{&socket, peer});
    }
    template <class Socket>
    void accept_now(Socket& socket, endpoint_type* peer, asio::error_code& why) {
        why = socket.is_open()  ? asio::error_code(asio::error::already_open)
              : this->is_open() ? asio::error_code()
                                : detail::asio_errno(EBADF);
        if (why) return;
        auto outcome = this->handle().accept(this->time_limit());
        if (not outcome) {
            why = detail::asio_blocked(outcome.error(), this->time_limit());
            return;
        }
        if (peer != nullptr) *peer = detail::endpoint_of<endpoint_type>(outcome->peer);
        socket.adopt(std::move(outcome->socket));
    }
};

}  // namespace asio_names
}  // namespace sluice::io

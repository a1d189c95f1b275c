#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/compose.hpp>
#include <asio/error.hpp>
#include <type_traits>
#include <utility>

#include "sluice/io/asio/socket.hpp"

namespace sluice::io {

namespace detail {

/// Accepts every endpoint.
struct asio_any_endpoint {
    template <class Endpoint>
    bool operator()(const asio::error_code&, const Endpoint&) const noexcept {
        return true;
    }
};

/// Connects to the endpoints of a range in order, until one accepts. Completes with an iterator or,
/// given `Result`, with the endpoint.
template <class Socket, class Iterator, class Condition, class Result>
class asio_range_connect {
public:
    asio_range_connect(Socket& socket, Iterator begin, Iterator end, Condition condition)
        : socket_(&socket), at_(std::move(begin)), end_(std::move(end)), condition_(std::move(condition)) {}

    template <class Self>
    void operator()(Self& self) {
        try_next(self, asio::error_code());
    }
    template <class Self>
    void operator()(Self& self, asio::error_code why) {
        // The program closed the socket in the meantime.
        if (not socket_->is_open()) why = asio::error::operation_aborted;
        if (not why) {
            self.complete(why, outcome());
        } else if (not socket_->is_open() or why == asio::error::operation_aborted) {
            self.complete(why, none());
        } else {
            ++at_;
            try_next(self, why);
        }
    }

private:
    template <class Self>
    void try_next(Self& self, asio::error_code last) {
        while (at_ != end_ and not condition_(last, typename Socket::endpoint_type(*at_)))
            ++at_;
        if (at_ == end_) {
            self.complete(last ? last : asio::error_code(asio::error::not_found), none());
            return;
        }
        const typename Socket::endpoint_type peer(*at_);
        asio::error_code ignored;
        socket_->close(ignored);
        socket_->async_connect(peer, std::move(self));
    }
    [[nodiscard]] Result outcome() const {
        if constexpr (std::same_as<Result, Iterator>) {
            return at_;
        } else {
            return Result(*at_);
        }
    }
    [[nodiscard]] Result none() const {
        if constexpr (std::same_as<Result, Iterator>) {
            return end_;
        } else {
            return Result();
        }
    }

    Socket* socket_;
    Iterator at_, end_;
    Condition condition_;
};

}  // namespace detail

namespace asio_names {

template <class Range>
concept endpoint_range = requires(const Range& range) {
    range.begin();
    range.end();
};
template <class Condition, class Endpoint>
concept connect_condition = std::is_invocable_r_v<bool, Condition, const asio::error_code&, const Endpoint&>;

/// Asio's async_connect: void(asio::error_code, endpoint), once one of the endpoints has accepted
/// the connection. They are tried in order; those for which the condition returns false are
/// skipped. The socket is closed and opened for each.
template <class Protocol, class Executor, endpoint_range Range,
          connect_condition<typename Protocol::endpoint> Condition,
          class Token = asio::default_completion_token_t<Executor>>
auto async_connect(basic_socket<Protocol, Executor>& socket, const Range& endpoints, Condition condition,
                   Token&& token = Token()) {
    using iterator = decltype(endpoints.begin());
    using endpoint = typename Protocol::endpoint;
    using steps = detail::asio_range_connect<basic_socket<Protocol, Executor>, iterator, Condition, endpoint>;
    return asio::async_compose<Token, void(asio::error_code, endpoint)>(
        steps(socket, endpoints.begin(), endpoints.end(), std::move(condition)), token, socket);
}
template <class Protocol, class Executor, endpoint_range Range,
          class Token = asio::default_completion_token_t<Executor>>
    requires(not connect_condition<std::decay_t<Token>, typename Protocol::endpoint>)
auto async_connect(basic_socket<Protocol, Executor>& socket, const Range& endpoints,
                   Token&& token = Token()) {
    return async_connect(socket, endpoints, detail::asio_any_endpoint(), std::forward<Token>(token));
}
/// As above, with iterators: void(asio::error_code, Iterator).
template <class Protocol, class Executor, class Iterator,
          class Token = asio::default_completion_token_t<Executor>>
    requires(not endpoint_range<Iterator>)
auto async_connect(basic_socket<Protocol, Executor>& socket, Iterator begin, Iterator end,
                   Token&& token = Token()) {
    using steps = detail::asio_range_connect<basic_socket<Protocol, Executor>, Iterator,
                                             detail::asio_any_endpoint, Iterator>;
    return asio::async_compose<Token, void(asio::error_code, Iterator)>(steps(socket, begin, end, {}), token,
                                                                        socket);
}

/// Asio's connect. Blocks: until one endpoint has accepted the connection.
template <class Protocol, class Executor, endpoint_range Range>
typename Protocol::endpoint connect(basic_socket<Protocol, Executor>& socket, const Range& endpoints,
                                    asio::error_code& why) {
    why = asio::error::not_found;
    for (const auto& each : endpoints) {
        const typename Protocol::endpoint peer(each);
        asio::error_code ignored;
        socket.close(ignored);
        socket.connect(peer, why);
        if (not why) return peer;
    }
    return {};
}
template <class Protocol, class Executor, endpoint_range Range>
typename Protocol::endpoint connect(basic_socket<Protocol, Executor>& socket, const Range& endpoints) {
    return detail::asio_or_throw("connect",
                                 [&](asio::error_code& why) { return connect(socket, endpoints, why); });
}

}  // namespace asio_names
}  // namespace sluice::io

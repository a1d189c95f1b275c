#pragma once

#include <istream>
#include <utility>

#include "sluice/io/asio/socket_streambuf.hpp"

namespace sluice::io {

namespace detail {

/// The buffer of a stream, constructed before the stream's base class that refers to it.
template <class Buffer>
struct asio_iostream_buffer {
    Buffer buffer;
};

}  // namespace detail

namespace asio_names {

/// Asio's basic_socket_iostream: a connection as a blocking std::iostream. Each output operation is
/// written at once (unitbuf). See basic_socket_streambuf.
template <class Protocol, class Clock = std::chrono::steady_clock, class Traits = asio::wait_traits<Clock>>
class basic_socket_iostream
    : private detail::asio_iostream_buffer<basic_socket_streambuf<Protocol, Clock, Traits>>,
      public std::iostream {
    using buffer_type = basic_socket_streambuf<Protocol, Clock, Traits>;
    using holder = detail::asio_iostream_buffer<buffer_type>;

public:
    using protocol_type = Protocol;
    using endpoint_type = typename Protocol::endpoint;
    using clock_type = Clock;
    using time_point = typename Clock::time_point;
    using duration = typename Clock::duration;

    basic_socket_iostream() : std::iostream(&this->holder::buffer) { setf(std::ios_base::unitbuf); }
    explicit basic_socket_iostream(basic_stream_socket<Protocol> socket)
        : holder{buffer_type(std::move(socket))}, std::iostream(&this->holder::buffer) {
        setf(std::ios_base::unitbuf);
    }
    /// Connects; sets failbit if that fails. See basic_socket_streambuf::connect.
    template <class... Query>
        requires(sizeof...(Query) > 0)
    explicit basic_socket_iostream(Query... query) : basic_socket_iostream() {
        connect(query...);
    }
    basic_socket_iostream(basic_socket_iostream&& other)
        : holder{std::move(other.holder::buffer)}, std::iostream(std::move(other)) {
        set_rdbuf(&this->holder::buffer);
    }
    basic_socket_iostream& operator=(basic_socket_iostream&& other) {
        std::iostream::operator=(std::move(other));
        this->holder::buffer = std::move(other.holder::buffer);
        return *this;
    }

    template <class... Query>
    void connect(Query... query) {
        if (rdbuf()->connect(query...) == nullptr) setstate(std::ios_base::failbit);
    }
    void close() {
        if (rdbuf()->close() == nullptr) setstate(std::ios_base::failbit);
    }

    [[nodiscard]] buffer_type* rdbuf() const noexcept {
        return const_cast<buffer_type*>(&this->holder::buffer);  // like std::stringstream
    }
    [[nodiscard]] basic_socket<Protocol>& socket() noexcept { return rdbuf()->socket(); }
    [[nodiscard]] const asio::error_code& error() const noexcept { return rdbuf()->error(); }

    [[nodiscard]] time_point expiry() const noexcept { return rdbuf()->expiry(); }
    void expires_at(const time_point& when) noexcept { rdbuf()->expires_at(when); }
    void expires_after(const duration& time) noexcept { rdbuf()->expires_after(time); }
};

}  // namespace asio_names
}  // namespace sluice::io

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::http {

/// Answers the connections to a listener, each within a time limit and few at once: for short
/// queries by administrators. It must not take resources from the clients of the server.
///
/// Thread safety: the loop's thread.
class request_listener {
public:
    static constexpr std::size_t usual_connections_max = 8;
    static constexpr std::chrono::seconds connection_within{10};

    /// Answers one connection. Suspends while it waits for the socket, which outlives it.
    using answerer = std::function<io::task<void>(io::socket_handle&)>;

    /// The listener is already attached to the loop. Beyond `connections_max` at once, further
    /// connections are closed.
    request_listener(io::io_multiplexer& loop, io::listening_socket_handle listener, answerer answer,
                     std::size_t connections_max = usual_connections_max)
        : loop_(loop),
          listener_(std::move(listener)),
          answer_(std::move(answer)),
          connections_max_(connections_max),
          tasks_(loop) {}
    request_listener(const request_listener&) = delete;
    request_listener& operator=(const request_listener&) = delete;

    /// Closes connections from other peers at once: they are not read, and do not count.
    /// Before start().
    void accept_only(std::function<bool(const io::socket_address& peer)> is_accepted) {
        is_accepted_ = std::move(is_accepted);
    }
    void start() { tasks_.spawn(accept_all()); }
    /// Ends the current connections. done() waits for their end. Suspends.
    void stop() noexcept { tasks_.cancel(); }
    [[nodiscard]] io::task<void> done() noexcept;

    [[nodiscard]] const io::listening_socket_handle& listener() const noexcept { return listener_; }

private:
    [[nodiscard]] io::task<void> accept_all() noexcept;
    [[nodiscard]] io::task<void> converse(io::socket_handle socket) noexcept;

    io::io_multiplexer& loop_;
    io::listening_socket_handle listener_;
    answerer answer_;
    std::size_t connections_max_;
    std::function<bool(const io::socket_address&)> is_accepted_;  // none: all
    io::task_group tasks_;
    std::size_t connections_ = 0;
};

/// Reads until `is_complete` returns true for the text so far, the end of the stream, or
/// `bytes_max`. Returns the text, which may be incomplete. Suspends. `is_complete` outlives it.
[[nodiscard]] io::task<std::string> co_read_until(io::socket_handle& from, std::size_t bytes_max,
                                                  bool (*is_complete)(std::string_view)) noexcept;
/// Writes the whole text. Errors: those of the socket. Suspends.
[[nodiscard]] io::task<result<void>> co_write_all(io::socket_handle& to, std::string text) noexcept;

}  // namespace sluice::http

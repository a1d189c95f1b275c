#include "sluice/discovery/http/request_listener.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "sluice/io/stream/socket_sender.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::http {

namespace {

constexpr std::chrono::milliseconds pause_when_out_of_descriptors{50};

}  // namespace

io::task<void> request_listener::accept_all() noexcept {
    for (;;) {
        auto accepted = co_await io::async_accept(listener_);
        if (not accepted) {
            if (accepted.error() == std::errc::operation_canceled) co_return;
            const auto slept = co_await io::co_sleep(loop_, pause_when_out_of_descriptors);
            if (not slept) co_return;
            continue;
        }
        if (is_accepted_ and not is_accepted_(accepted->peer)) continue;
        if (connections_ >= connections_max_) continue;
        if (const auto attached = accepted->socket.set_multiplexer(&loop_); not attached) continue;
        tasks_.spawn(converse(std::move(accepted->socket)));
    }
}

io::task<void> request_listener::converse(io::socket_handle socket) noexcept {
    ++connections_;
    io::task<void> answering = answer_(socket);
    (void)co_await io::with_deadline(loop_, std::move(answering), connection_within);
    --connections_;
}

io::task<void> request_listener::done() noexcept {
    co_await tasks_.join();
}

io::task<std::string> co_read_until(io::socket_handle& from, std::size_t bytes_max,
                                    bool (*is_complete)(std::string_view)) noexcept {
    std::string text;
    std::array<std::byte, 1024> piece;
    while (not is_complete(text) and text.size() < bytes_max) {
        const std::size_t room = std::min(piece.size(), bytes_max - text.size());
        const io::io_request<io::bytes_type> wanted{.buffers = std::span(piece).first(room)};
        const auto got = co_await io::co_read(from, wanted);
        if (got.bytes_transferred() == 0) break;
        text.append(reinterpret_cast<const char*>(got->data()), got->size());
    }
    co_return text;
}

io::task<result<void>> co_write_all(io::socket_handle& to, std::string text) noexcept {
    std::span<const std::byte> left = std::as_bytes(std::span(text));
    while (not left.empty()) {
        const io::io_request<io::const_bytes_type> wanted{.buffers = left};
        const auto sent = co_await io::co_write(to, wanted);
        if (not sent) co_return failure(sent.error());
        left = left.subspan(sent.bytes_transferred());
    }
    co_return result<void>{};
}

}  // namespace sluice::http

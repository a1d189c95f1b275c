#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "tests/smb_client/receive_all.hpp"

namespace sluice::smb_client_testing {

/// A relay between a client and a server that can change the messages of the server. It ends with
/// either of them. Thread safety: the loop's thread.
class relay {
public:
    /// Receives the messages of each frame of the server, and may change them.
    using editor = std::function<void(std::vector<std::byte>& messages)>;

    /// `server`: the client's end of a connection to the server.
    relay(io::io_multiplexer& loop, io::socket_handle server, editor edit)
        : loop_(loop), server_(std::move(server)), edit_(std::move(edit)), tasks_(loop) {
        auto pair = io::socket_handle::pair().value();
        client_ = std::move(pair.first);
        clients_end_ = std::move(pair.second);
        EXPECT_TRUE(client_.set_multiplexer(&loop));
        EXPECT_TRUE(clients_end_.set_multiplexer(&loop));
        tasks_.spawn(pass_requests());
        tasks_.spawn(pass_replies());
    }

    ~relay() {
        tasks_.cancel();
        while (tasks_.size() != 0 and loop_.run().value_or(0) > 0) {}
    }

    /// Returns how many bytes the client has sent.
    [[nodiscard]] std::size_t sent_by_client() const noexcept { return sent_by_client_; }

    /// Returns the socket for the client.
    [[nodiscard]] io::socket_handle take_clients_end() { return std::move(clients_end_); }

private:
    io::task<void> pass_requests() {
        std::vector<std::byte> some(64U << 10);
        for (;;) {
            const auto got = co_await io::co_read(client_, io::io_request<io::bytes_type>{some});
            if (not got or got.bytes_transferred() == 0) break;
            const std::span<const std::byte> bytes = std::span(some).first(got.bytes_transferred());
            sent_by_client_ += bytes.size();
            const auto sent = co_await io::co_write(server_, io::io_request<io::const_bytes_type>{bytes});
            if (not sent) break;
        }
        (void)server_.shutdown(io::direction::out);
    }

    io::task<void> pass_replies() {
        std::vector<std::byte> frame;
        for (;;) {
            frame.resize(smb::wire::frame_prefix_bytes);
            auto receiving_prefix = receive_all(server_, frame);
            if (not co_await std::move(receiving_prefix)) break;
            frame.resize(smb::wire::decode_frame_prefix(frame, smb::wire::frame_bytes_max).value());
            auto receiving = receive_all(server_, frame);
            if (not co_await std::move(receiving)) break;
            edit_(frame);
            std::vector<std::byte> out(smb::wire::frame_prefix_bytes);
            byte_writer prefix{mutable_bytes(out)};
            smb::wire::encode_frame_prefix(prefix, frame.size());
            out.insert(out.end(), frame.begin(), frame.end());
            const auto sent = co_await io::co_write(
                client_, io::io_request<io::const_bytes_type>{std::span(std::as_const(out))});
            if (not sent) break;
        }
        (void)client_.shutdown(io::direction::out);
    }

    io::io_multiplexer& loop_;
    io::socket_handle client_;
    io::socket_handle server_;
    io::socket_handle clients_end_;
    editor edit_;
    std::size_t sent_by_client_ = 0;
    io::task_group tasks_;
};

}  // namespace sluice::smb_client_testing

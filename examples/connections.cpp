// Reads from N connections in one array, driven by each of the three loops of P2052R0:
//
//     connections poll|complete_io|run [N]
//
// An operation does not allocate: a connection's state is created once, and started repeatedly. A
// thread at the other ends sends to all in order; the program fails unless every byte arrives.

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/socket_handle.hpp"

using namespace sluice::io;

namespace {

constexpr std::size_t messages = 100;
constexpr std::string_view message = "something that happened";

// A connection counts the bytes it receives, and always has a read pending.
class connection {
public:
    void open(socket_handle socket, io_multiplexer& loop) {
        socket_ = std::move(socket);
        socket_.set_multiplexer(&loop).value();
        read_ = connect(async_read(socket_, io_request<bytes_type>{block_}), on_read{this});
        read_.start();
    }
    bool poll() noexcept { return read_.poll(); }
    [[nodiscard]] bool is_open() const noexcept { return read_.started(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
    struct on_read {
        connection* self;
        void set_value(io_result<bytes_type>&& got) noexcept {
            self->has_ended_ = got.bytes_transferred() == 0;
            self->bytes_ += got.bytes_transferred();
        }
        void set_done() noexcept {
            if (not self->has_ended_) self->read_.start();
        }
    };

    socket_handle socket_;
    std::array<std::byte, 256> block_{};
    std::size_t bytes_ = 0;
    bool has_ended_ = false;
    io_operation_connection<transfer_sender<bytes_type>, on_read> read_;
};

// Polls each operation repeatedly, which has the lowest latency.
void drive_by_poll(std::vector<connection>& all) {
    for (bool any = true; any;) {
        any = false;
        for (connection& each : all) {
            if (not each.is_open()) continue;
            (void)each.poll();
            any = true;
        }
    }
}

// Completes all operations that are ready, and never sleeps: for a program with
// other work in between.
sluice::result<void> drive_by_complete_io(io_multiplexer& loop) {
    for (;;) {
        const auto count = loop.complete_io();
        if (not count) return sluice::failure(count.error());
        if (*count == io_multiplexer::nothing_pending) return {};
    }
}

// Sleeps until an operation is ready, which takes the least CPU time.
sluice::result<void> drive_by_run(io_multiplexer& loop) {
    for (;;) {
        const auto count = loop.run();
        if (not count) return sluice::failure(count.error());
        if (*count == io_multiplexer::nothing_pending) return {};
    }
}

sluice::result<void> drive(std::string_view by, io_multiplexer& loop, std::vector<connection>& all) {
    if (by == "complete_io") return drive_by_complete_io(loop);
    if (by == "run") return drive_by_run(loop);
    drive_by_poll(all);
    return {};
}

void send_to_all(std::vector<socket_handle> to) {
    const auto bytes = std::as_bytes(std::span(message));
    for (std::size_t i = 0; i < messages; ++i) {
        for (socket_handle& each : to)
            (void)each.write(io_request<const_bytes_type>{bytes});
    }
}  // and closes them, which ends the reads

}  // namespace

int main(int argc, char** argv) {
    const std::string_view by = argc > 1 ? argv[1] : "";
    std::size_t count = 64;
    if (argc > 2) (void)std::from_chars(argv[2], argv[2] + std::string_view(argv[2]).size(), count);
    if (by != "poll" and by != "complete_io" and by != "run") {
        std::fprintf(stderr, "usage: %s poll|complete_io|run [CONNECTIONS]\n", argv[0]);
        return 2;
    }
    io_multiplexer& loop = *this_thread::multiplexer().value();
    std::vector<connection> all(count);
    std::vector<socket_handle> others;
    for (connection& each : all) {
        auto ends = socket_handle::pair().value();
        each.open(std::move(ends.first), loop);
        others.push_back(std::move(ends.second));
    }
    const std::jthread sender(send_to_all, std::move(others));
    if (const auto driven = drive(by, loop, all); not driven) {
        std::fprintf(stderr, "%s: %s\n", argv[0], driven.error().message().c_str());
        return 1;
    }
    std::size_t bytes = 0;
    for (const connection& each : all)
        bytes += each.bytes();
    std::printf("%zu bytes from %zu connections, by %s\n", bytes, count, argv[1]);
    return bytes == count * messages * message.size() ? 0 : 1;
}

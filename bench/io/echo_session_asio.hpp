#pragma once

#include <array>
#include <asio.hpp>

#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {

/// One connection of an echo server on Asio.
struct asio_session {
    asio::ip::tcp::socket socket;
    std::array<char, 1> byte{};

    void read() {
        socket.async_read_some(asio::buffer(byte), [this](asio::error_code ended, std::size_t) {
            if (not ended) write();
        });
    }
    void write() {
        asio::async_write(socket, asio::buffer(byte), [this](asio::error_code failed, std::size_t) {
            ENSURE(not failed);
            read();
        });
    }
};

}  // namespace sluice::bench::peers

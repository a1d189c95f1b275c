#pragma once

#include <optional>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::bench {

/// One connection of an echo server: the completion of its read starts its write, and vice versa,
/// on any thread.
class echo_session {
public:
    echo_session(int descriptor, io::io_multiplexer& multiplexer)
        : socket_(io::socket_handle::adopt(descriptor).value()) {
        socket_.set_multiplexer(&multiplexer).value();
        read_.emplace(
            connect(async_read(socket_, io::io_request<io::bytes_type>{{&byte_, 1}}), on_read{this}));
        write_.emplace(
            connect(async_write(socket_, io::io_request<io::const_bytes_type>{{&byte_, 1}}), on_write{this}));
    }

    void start() noexcept { read_->start(); }
    /// A poll signals its own operation only, so that both are polled.
    bool poll() noexcept {
        read_->poll();
        write_->poll();
        return not is_over_;
    }

private:
    struct on_read {
        echo_session* self;
        void set_value(io::io_result<io::bytes_type>&& got) noexcept {
            self->is_over_ = got.bytes_transferred() == 0;
        }
        void set_done() noexcept {
            if (not self->is_over_) self->write_->start();
        }
    };
    struct on_write {
        echo_session* self;
        void set_value(io::io_result<io::const_bytes_type>&& put) noexcept {
            ENSURE(put.bytes_transferred() == 1);
        }
        void set_done() noexcept { self->read_->start(); }
    };

    io::socket_handle socket_;
    std::byte byte_{};
    bool is_over_ = false;
    std::optional<io::io_operation_connection<io::transfer_sender<io::bytes_type>, on_read>> read_;
    std::optional<io::io_operation_connection<io::transfer_sender<io::const_bytes_type>, on_write>> write_;
};

}  // namespace sluice::bench

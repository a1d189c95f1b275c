#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/sender/sender.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io::uring_test {

/// A multiplexer for a test; see needs_uring in uring_multiplexer_test.cpp for
/// where io_uring is denied.
inline std::unique_ptr<io_multiplexer> make(uring_options options = {}) {
    auto made = make_uring_multiplexer(options);
    EXPECT_TRUE(made.has_value()) << made.error().message();
    return std::move(made.value());
}

inline std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

struct socket_pair {
    io_handle ours;
    int theirs = -1;

    explicit socket_pair(int type = SOCK_STREAM) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
        ours = io_handle(native_handle{.descriptor = ends[0],
                                       .kind = handle_kind::socket,
                                       .readable = true,
                                       .writable = true,
                                       .stream = type == SOCK_STREAM});
        theirs = ends[1];
    }
    socket_pair(socket_pair&& other) noexcept
        : ours(std::move(other.ours)), theirs(std::exchange(other.theirs, -1)) {}
    ~socket_pair() {
        if (theirs >= 0) ::close(theirs);
    }

    void say(std::string_view s) const { EXPECT_EQ(::write(theirs, s.data(), s.size()), ssize_t(s.size())); }
    /// Returns all bytes that have arrived, up to `bytes_max`.
    [[nodiscard]] std::string hear(std::size_t bytes_max = 1 << 20) const {
        std::string heard(bytes_max, '\0');
        const ssize_t got = ::recv(theirs, heard.data(), heard.size(), MSG_DONTWAIT);
        heard.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return heard;
    }
};

/// The outcome of an operation.
struct outcome {
    int values = 0;
    int dones = 0;
    int code = 0;
    std::size_t bytes = 0;
};

struct recorder {
    outcome* into;
    template <class Result>
    void set_value(Result&& came) noexcept {
        ++into->values;
        into->code = came.has_value() ? 0 : came.error().code();
        if constexpr (requires { came.bytes_transferred(); }) into->bytes = came.bytes_transferred();
    }
    void set_done() noexcept { ++into->dones; }
};

using read_state = io_operation_connection<transfer_sender<bytes_type>, recorder>;
using write_state = io_operation_connection<transfer_sender<const_bytes_type>, recorder>;

/// A read of up to 64 bytes with stable storage.
struct one_read {
    std::array<std::byte, 64> memory{};
    outcome result;
    read_state state;

    one_read(io_handle& from, std::size_t bytes, extent_type offset = 0, deadline within = {})
        : state(connect(
              async_read(from, io_request<bytes_type>{std::span(memory).first(bytes), offset}, within),
              recorder{&result})) {}
    [[nodiscard]] std::string text() const {
        return {reinterpret_cast<const char*>(memory.data()), result.bytes};
    }
};

struct one_write {
    std::string memory;
    outcome result;
    write_state state;

    one_write(io_handle& to, std::string what, extent_type offset = 0, deadline within = {})
        : memory(std::move(what)),
          state(
              connect(async_write(to, io_request<const_bytes_type>{uring_test::text(memory), offset}, within),
                      recorder{&result})) {}
};

/// Runs everything that does not have to wait long for an event from outside.
inline void drain(io_multiplexer& multiplexer) {
    using namespace std::chrono_literals;
    while (multiplexer.try_run_for(5ms).value_or(0) > 0) {}
}

/// A separate file, already unlinked, on the file system of the tests.
inline io_handle scratch_file() {
    std::string path = "/var/tmp/sluice-uring-XXXXXX";
    const int descriptor = ::mkstemp(path.data());
    EXPECT_GE(descriptor, 0);
    ::unlink(path.c_str());
    return io_handle(native_handle{
        .descriptor = descriptor, .kind = handle_kind::file, .readable = true, .writable = true});
}

}  // namespace sluice::io::uring_test

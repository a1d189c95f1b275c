#include "sluice/io/epoll/epoll_multiplexer.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using sandbox_test::ask_in_child;
using sandbox_test::deny;

struct noting {
    std::string* into;
    void set_value(io_result<bytes_type>&& got) const noexcept {
        *into = got ? std::to_string(got.bytes_transferred()) + " bytes" : got.error().message();
    }
    void set_done() const noexcept {}
};

// Returns the outcome of a read of a pipe that is empty at first, and the cost of the wait.
std::string wait_and_read(std::chrono::milliseconds wait, deadline limit, bool is_written) {
    auto multiplexer = make_epoll_multiplexer(0).value();
    auto pipe = pipe_handle::anonymous().value();
    if (not pipe.reader.set_multiplexer(multiplexer.get())) return "not attached";
    std::array<std::byte, 8> memory{};
    std::string outcome = "nothing";
    auto read = connect(async_read(pipe.reader, io_request<bytes_type>{memory}, limit), noting{&outcome});
    read.start();
    const auto before = io_multiplexer::clock::now();
    int passes = 0;
    while (outcome == "nothing" and io_multiplexer::clock::now() - before < 5s) {
        (void)multiplexer->try_run_for(wait);
        if (is_written and ++passes == 1) {
            if (io_multiplexer::clock::now() - before < wait) return "did not wait";
            (void)pipe.writer.write({.buffers = std::as_bytes(std::span("abc", 3))});
        }
    }
    return outcome;
}

TEST(epoll_multiplexer, on_a_kernel_that_counts_in_milliseconds_waits_are_in_milliseconds) {
    for (const int code : {ENOSYS, EPERM}) {  // a kernel before 5.11; a sandbox of that time
        EXPECT_EQ(ask_in_child([code] {
                      deny(SYS_epoll_pwait2, code);
                      return wait_and_read(20ms, {}, true);
                  }),
                  "3 bytes");
        const std::string late = ask_in_child([code] {
            deny(SYS_epoll_pwait2, code);
            return wait_and_read(1s, 1500us, false);
        });
        EXPECT_TRUE(late.ends_with("timed out")) << late;
    }
}

TEST(epoll_multiplexer, an_error_of_the_kernel_is_returned) {
    EXPECT_EQ(ask_in_child([] {
                  auto multiplexer = make_epoll_multiplexer(0).value();
                  auto pipe = pipe_handle::anonymous().value();
                  if (not pipe.reader.set_multiplexer(multiplexer.get())) return std::string("not attached");
                  std::array<std::byte, 8> memory{};
                  std::string outcome;
                  auto read =
                      connect(async_read(pipe.reader, io_request<bytes_type>{memory}), noting{&outcome});
                  read.start();
                  deny(SYS_epoll_pwait2, EINVAL);
                  const auto ran = multiplexer->run();
                  std::string text = ran ? "no error" : ran.error().message();
                  text.erase(0, text.find(": ") + 2);  // the descriptor
                  if (multiplexer->complete_io().has_value() or multiplexer->pending() != 1) text += ", once";
                  read.cancel();
                  while (read.started())
                      (void)multiplexer->run();
                  return text;
              }),
              "epoll_wait: Invalid argument");
}

// A socket that epoll watches, because one byte has been waited for, and read.
class watched_socket {
public:
    watched_socket() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        socket_ = socket_handle::adopt(ends[0]).value();
        peer_ = socket_handle::adopt(ends[1]).value();
        socket_.set_multiplexer(multiplexer_.get()).value();
        EXPECT_EQ(start_and_look(memory_), "nothing");
        send_byte();
        (void)multiplexer_->run();
        EXPECT_EQ(outcome_, "1 bytes");
    }
    void send_byte() { EXPECT_TRUE(peer_.write({.buffers = std::as_bytes(std::span("a", 1))})); }
    void end() {
        read_->cancel();
        while (read_->started())
            (void)multiplexer_->run();
    }
    // Starts a read, makes one pass, which does not wait, and returns the outcome.
    std::string start_and_look(bytes_type into) {
        outcome_ = "nothing";
        read_.emplace(connect(async_read(socket_, io_request<bytes_type>{into}), noting{&outcome_}));
        read_->start();
        (void)multiplexer_->try_run();
        return outcome_;
    }
    bytes_type memory() { return memory_; }

private:
    std::unique_ptr<io_multiplexer> multiplexer_ = make_epoll_multiplexer(0).value();
    socket_handle socket_, peer_;
    std::array<std::byte, 8> memory_{};
    std::string outcome_;
    std::optional<io_operation_connection<transfer_sender<bytes_type>, noting>> read_;
};

TEST(epoll_multiplexer, a_socket_it_watches_is_not_read_before_epoll_reports_it) {
    EXPECT_EQ(ask_in_child([] {
                  watched_socket socket;
                  deny(SYS_recvfrom, EIO);
                  std::string quiet = socket.start_and_look(socket.memory());
                  socket.end();
                  return quiet;
              }),
              "nothing");
}

TEST(epoll_multiplexer, bytes_of_a_watched_socket_before_a_read_begins_are_read_in_one_pass) {
    watched_socket socket;
    socket.send_byte();
    EXPECT_EQ(socket.start_and_look(socket.memory()), "1 bytes");
}

TEST(epoll_multiplexer, a_read_of_no_bytes_does_not_wait_for_a_watched_socket) {
    watched_socket socket;
    EXPECT_EQ(socket.start_and_look({}), "0 bytes");
}

}  // namespace
}  // namespace sluice::io

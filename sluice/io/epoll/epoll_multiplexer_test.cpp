#include "sluice/io/epoll/epoll_multiplexer.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <string>

#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

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

// What a read of a pipe comes to that at first finds nothing there, with what the waiting for it cost.
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

TEST(epoll_multiplexer, a_kernel_that_counts_in_milliseconds_only_is_waited_with_in_those) {
    for (const int code : {ENOSYS, EPERM}) {  // a kernel before 5.11; a sandbox made then
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
                  if (multiplexer->complete_io().has_value() or multiplexer->pending() != 1) text += ", once";
                  read.cancel();
                  while (read.started())
                      (void)multiplexer->run();
                  return text.substr(0, text.find(" on "));
              }),
              "epoll_wait");
}

}  // namespace
}  // namespace sluice::io

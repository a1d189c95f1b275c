#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <coroutine>
#include <cstdlib>
#include <string>
#include <thread>

#include "sluice/io/best_available.hpp"
#include "sluice/io/call/sandbox_testing.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io {
namespace {

// A coroutine that no loop runs.
struct detached {
    struct promise_type {
        [[nodiscard]] static detached get_return_object() noexcept { return {}; }
        [[nodiscard]] static std::suspend_never initial_suspend() noexcept { return {}; }
        [[nodiscard]] static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::abort(); }
    };
};

// best_available() queries the system once per process, so each test runs in a child.
using sandbox_test::ask_in_child;
using sandbox_test::deny;

std::string name_and_reason() {
    const auto made = best_available();
    const std::string name = made ? std::string((*made)->name()) : "none, " + made.error().message();
    return name + "|" + std::string(best_available_reason());
}

TEST(best_available, io_uring_denied_by_seccomp_falls_back_to_epoll_and_reports_the_reason) {
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(ask_in_child([] {
                  deny(SYS_io_uring_setup, EPERM);
                  return name_and_reason();
              }),
              "epoll|epoll: io_uring_setup, denied by seccomp or kernel.io_uring_disabled: "
              "Operation not permitted");
}

TEST(best_available, io_uring_unknown_to_the_sandbox_falls_back_to_epoll_and_reports_the_reason) {
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(ask_in_child([] {
                  deny(SYS_io_uring_setup, ENOSYS);
                  return name_and_reason();
              }),
              "epoll|epoll: io_uring_setup, unknown to this kernel or sandbox: Function not implemented");
}

TEST(best_available, a_ring_that_can_be_created_but_not_used_is_not_chosen) {
    if (const auto tried = try_uring(); not tried) GTEST_SKIP() << tried.error().message();
    ::unsetenv("SLUICE_MULTIPLEXER");
    const std::string answer = ask_in_child([] {
        deny(SYS_io_uring_enter, EPERM);
        return name_and_reason();
    });
    EXPECT_TRUE(answer.starts_with("epoll|epoll: io_uring_enter")) << answer;
}

TEST(best_available, the_environment_forces_either_back_end) {
    ::setenv("SLUICE_MULTIPLEXER", "epoll", 1);
    EXPECT_EQ(ask_in_child(name_and_reason), "epoll|epoll: SLUICE_MULTIPLEXER=epoll");
    ::setenv("SLUICE_MULTIPLEXER", "io_uring", 1);
    const std::string denied = ask_in_child([] {
        deny(SYS_io_uring_setup, EPERM);
        return name_and_reason();
    });
    EXPECT_TRUE(denied.starts_with("none, io_uring_setup, denied")) << denied;
    ::unsetenv("SLUICE_MULTIPLEXER");
}

TEST(best_available, an_operation_without_a_multiplexer_ends_with_the_reason) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child([] {
        struct noting {
            std::string* into;
            void set_value(io_result<bytes_type>&& got) const noexcept {
                *into += got ? "read" : got.error().message();
            }
            void set_done() const noexcept { *into += ", done"; }
        };
        auto pipe = pipe_handle::anonymous().value();
        std::array<std::byte, 1> memory{};
        std::string outcome;
        for (const auto how : {initiation::automatic, initiation::batched}) {
            auto read = connect(async_read(pipe.reader, io_request<bytes_type>{memory}), noting{&outcome});
            read.start(how);
        }
        return outcome;
    });
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_NE(answer.find("SLUICE_MULTIPLEXER=kqueue: choose io_uring or epoll"), std::string::npos)
        << answer;
    EXPECT_NE(answer.find(", done"), std::string::npos) << answer;
    EXPECT_NE(answer.find(", done", answer.find(", done") + 1), std::string::npos) << "each of them";
}

TEST(best_available, repeated_operations_without_a_multiplexer_end_with_the_reason) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child([] {
        auto pipe = pipe_handle::anonymous().value();
        std::array<std::byte, 1> memory{};
        int errors = 0;
        // More awaits than one pass of a loop completes inline, each started from its own signal.
        const auto often = [&]() -> detached {
            for (int i = 0; i != 200; ++i)
                errors += (co_await co_read(pipe.reader, io_request<bytes_type>{memory})).has_value() ? 0 : 1;
        };
        often();
        return std::to_string(errors);
    });
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(answer, "200");
}

TEST(best_available, an_operation_without_a_multiplexer_started_by_a_receiver_is_signalled) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child([] {
        auto pipe = pipe_handle::anonymous().value();
        std::array<std::byte, 1> memory{};
        struct again {
            int* signals;
            io_operation_connection<transfer_sender<bytes_type>, again>** self;
            void set_value(io_result<bytes_type>&&) const noexcept { ++*signals; }
            void set_done() const noexcept {
                if (*signals < 100'000) (*self)->start();
            }
        };
        int signals = 0;
        io_operation_connection<transfer_sender<bytes_type>, again>* self = nullptr;
        auto read = connect(async_read(pipe.reader, io_request<bytes_type>{memory}), again{&signals, &self});
        self = &read;
        read.start();
        return std::to_string(signals) + (read.started() ? ", started" : "");
    });
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(answer, "100000");
}

TEST(best_available, an_operation_without_a_multiplexer_started_by_another_thread_is_signalled) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child([] {
        auto pipe = pipe_handle::anonymous().value();
        std::array<std::byte, 1> memory{};
        struct counting {
            int* signals;
            void set_value(io_result<bytes_type>&& got) const noexcept { *signals += got ? 100 : 1; }
            void set_done() const noexcept { ++*signals; }
        };
        int signals = 0;
        auto read =
            connect(atomic(async_read(pipe.reader, io_request<bytes_type>{memory})), counting{&signals});
        std::thread([&] { read.start(); }).join();
        return std::to_string(signals) + (read.started() ? ", started" : "");
    });
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(answer, "2");
}

TEST(best_available, an_unknown_name_in_the_environment_is_an_error_that_names_it) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child(name_and_reason);
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_TRUE(answer.starts_with("none, SLUICE_MULTIPLEXER=kqueue: choose io_uring or epoll")) << answer;
}

}  // namespace
}  // namespace sluice::io

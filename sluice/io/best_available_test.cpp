#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {
namespace {

// What best_available finds out it finds out once, so every question is asked in a child. Returns what the
// child answers.
std::string ask_in_child(const std::function<std::string()>& question) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const std::string answer = question();
        (void)::write(ends[1], answer.data(), answer.size());
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string answer;
    std::array<char, 256> some{};
    for (ssize_t got = 0; (got = ::read(ends[0], some.data(), some.size())) > 0;)
        answer.append(some.data(), static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return answer;
}

std::string name_and_reason() {
    const auto made = best_available();
    const std::string name = made ? std::string((*made)->name()) : "none, " + made.error().message();
    return name + "|" + std::string(best_available_reason());
}

// As the seccomp profile of a container does it.
void deny(int system_call, int code) {
    std::array<sock_filter, 4> program = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(system_call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog filter{.len = program.size(), .filter = program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        ::_exit(1);
    }
}

TEST(best_available, io_uring_denied_by_seccomp_falls_back_to_epoll_and_says_why) {
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(ask_in_child([] {
                  deny(SYS_io_uring_setup, EPERM);
                  return name_and_reason();
              }),
              "epoll|epoll: io_uring_setup, denied by seccomp or kernel.io_uring_disabled: "
              "Operation not permitted");
}

TEST(best_available, io_uring_unknown_to_the_sandbox_falls_back_to_epoll_and_says_why) {
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_EQ(ask_in_child([] {
                  deny(SYS_io_uring_setup, ENOSYS);
                  return name_and_reason();
              }),
              "epoll|epoll: io_uring_setup, unknown to this kernel or sandbox: Function not implemented");
}

TEST(best_available, a_ring_that_may_be_made_but_not_used_is_not_chosen) {
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

TEST(best_available, an_unknown_name_in_the_environment_is_an_error_that_names_it) {
    ::setenv("SLUICE_MULTIPLEXER", "kqueue", 1);
    const std::string answer = ask_in_child(name_and_reason);
    ::unsetenv("SLUICE_MULTIPLEXER");
    EXPECT_TRUE(answer.starts_with("none, SLUICE_MULTIPLEXER is neither io_uring nor epoll but kqueue"))
        << answer;
}

}  // namespace
}  // namespace sluice::io

#include "sluice/cli/hardening/openat2.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>

#include "sluice/io/call/sandbox_testing.hpp"

namespace sluice::cli {
namespace {

using io::sandbox_test::ask_in_child;
using io::sandbox_test::deny;

TEST(openat2, works_without_a_sandbox) {
    EXPECT_EQ(openat2_problem(), 0);
    EXPECT_FALSE(is_for_lack_of_openat2(error(EPERM, "open")));
    EXPECT_FALSE(is_for_lack_of_openat2(error(EACCES, "open")));
}

TEST(openat2, denial_by_a_sandbox_is_recognised) {
    for (const int code : {ENOSYS, EPERM}) {
        const std::string answer = ask_in_child([code] {
            deny(SYS_openat2, code);
            return std::to_string(openat2_problem()) +
                   (is_for_lack_of_openat2(error(code, "open")) ? " is the cause" : " is not the cause") +
                   (is_for_lack_of_openat2(error(EACCES, "open")) ? ", always" : "");
        });
        EXPECT_EQ(answer, std::to_string(code) + " is the cause");
    }
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/cli/client_settings/password_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <string>

namespace sluice::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

[[nodiscard]] std::string output_of(const std::string& script) {
    const auto printed = password_of_command({"sh", "-c", script}, {.host = "nas", .user = "alice"});
    return printed ? "password " + std::string(printed->view()) : printed.error();
}

TEST(password_command, first_line_of_the_output_is_the_password) {
    EXPECT_EQ(output_of("printf 'two words\\nsecond line\\n'"), "password two words");
    EXPECT_EQ(output_of("printf unended"), "password unended");
}

TEST(password_command, a_program_learns_whom_the_password_is_for) {
    EXPECT_EQ(output_of("echo $SLUICE_USER@$SLUICE_HOST"), "password alice@nas");
}

TEST(password_command, a_program_does_not_get_the_password_of_another_server_or_the_input) {
    ::setenv("SLUICE_PASSWORD", "secret", 1);
    EXPECT_EQ(output_of("echo \"<$SLUICE_PASSWORD>$(cat)\""), "password <>");
    ::unsetenv("SLUICE_PASSWORD");
}

TEST(password_command, a_program_that_prints_nothing_is_an_error_with_its_status) {
    EXPECT_THAT(output_of("exit 3"), HasSubstr("it exited with status 3"));
    EXPECT_THAT(output_of("kill -TERM $$"), HasSubstr("a signal ended it (15)"));
    EXPECT_THAT(output_of("true"), HasSubstr("it printed no password"));
}

TEST(password_command, output_of_a_program_that_fails_is_not_a_password) {
    EXPECT_THAT(output_of("echo the keyring is locked; exit 1"), HasSubstr("it exited with status 1"));
}

TEST(password_command, a_program_that_closes_its_output_and_goes_on_is_killed) {
    const auto printed = password_of_command({"sh", "-c", "echo word; exec >&- sleep 1000"},
                                             {.host = "nas", .user = "alice"}, 50ms);
    ASSERT_FALSE(printed);
    EXPECT_THAT(printed.error(), HasSubstr("it did not end in time"));
}

TEST(password_command, end_of_a_line_may_be_that_of_windows) {
    EXPECT_EQ(output_of("printf 'word\\r\\n'"), "password word");
}

TEST(password_command, a_program_that_cannot_start_is_named) {
    const auto printed = password_of_command({"/nonexistent/program"}, {.host = "nas", .user = "alice"});
    ASSERT_FALSE(printed);
    EXPECT_EQ(printed.error(), "password-command '/nonexistent/program': start: No such file or directory");
}

TEST(password_command, a_line_without_end_is_refused_and_the_program_killed) {
    EXPECT_THAT(output_of("while true; do printf aaaaaaaa; done"), HasSubstr("more than 1024 bytes"));
}

TEST(password_command, a_program_that_prints_nothing_in_time_is_killed) {
    const auto printed = password_of_command({"sleep", "1000"}, {.host = "nas", .user = "alice"}, 20ms);
    ASSERT_FALSE(printed);
    EXPECT_THAT(printed.error(), HasSubstr("it did not print the password in time"));
}

}  // namespace
}  // namespace sluice::cli

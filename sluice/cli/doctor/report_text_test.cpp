#include "sluice/cli/doctor/report_text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "sluice/cli/doctor/text_file.hpp"
#include "sluice/cli/doctor/timed_run.hpp"

// The output, and the run within a deadline.

namespace sluice::cli::doctor {
namespace {

[[nodiscard]] finding some_problem(std::string evidence = "seen") {
    return {.level = severity::problem,
            .check = "port",
            .what = "port 445 is closed",
            .evidence = std::move(evidence),
            .remedy = "sluice serve"};
}

TEST(doctor_report, lists_problems_before_notes) {
    const finding note{.level = severity::note, .check = "cpu", .what = "fast", .evidence = {}, .remedy = {}};
    EXPECT_EQ(report_text("this host", {note, some_problem()}, false),
              "this host\n"
              "x problem: port: port 445 is closed\n"
              "    observed: seen\n"
              "    remedy:   sluice serve\n"
              "- note: cpu: fast\n"
              "1 problem, 0 warnings, 1 note\n");
}

TEST(doctor_report, text_of_a_server_cannot_control_the_terminal) {
    const std::string text = report_text("a\x1b[2J", {some_problem("\x1b[31m\nx problem: fake\xff")}, false);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\nx problem: fake"), std::string::npos);
}

TEST(doctor_report, colours_only_add_to_the_words) {
    const std::string text = report_text("h", {some_problem()}, true);
    EXPECT_NE(text.find("\x1b[31mx problem\x1b[0m: port"), std::string::npos);
}

TEST(doctor_report, json_has_each_finding) {
    EXPECT_EQ(report_json("h", {some_problem("\x1b")}),
              "{\"format\":\"sluice-doctor\",\"version\":1,\"subject\":\"h\",\"problems\":1,\"warnings\":0,"
              "\"findings\":[{\"severity\":\"problem\",\"check\":\"port\",\"what\":\"port 445 is closed\","
              "\"evidence\":\"\\u001b\",\"remedy\":\"sluice serve\"}]}\n");
}

TEST(doctor_run, returns_the_findings_of_all_checks) {
    const auto seen =
        run_within([](finding_list& into) { into.note("a", "b"); }, std::chrono::minutes(1), false);
    EXPECT_TRUE(seen.is_complete);
    ASSERT_EQ(seen.findings.size(), 1U);
}

TEST(doctor_run, abandons_a_check_that_does_not_end_and_names_it) {
    const auto never = std::make_shared<std::promise<void>>();
    const auto seen = run_within(
        [future = never->get_future().share()](finding_list& into) {
            into.begin("a hung file system");
            into.note("a", "b");
            future.wait();
        },
        std::chrono::milliseconds(50), false);
    EXPECT_FALSE(seen.is_complete);
    ASSERT_FALSE(seen.findings.empty());
    EXPECT_EQ(seen.findings.back().level, severity::problem);
    // On a busy machine, the time may be over before the thread begins.
    if (seen.findings.size() > 1) {
        EXPECT_NE(seen.findings.back().what.find("a hung file system"), std::string::npos);
    }
    never->set_value();
}

TEST(doctor_text, word_of_a_shell_is_quoted_unless_it_is_plain) {
    EXPECT_EQ(shell_word("/srv/media"), "/srv/media");
    EXPECT_EQ(shell_word("/srv/my media"), "'/srv/my media'");
    EXPECT_EQ(shell_word("a'$(b)"), "'a'\\''$(b)'");
    EXPECT_EQ(shell_word(""), "''");
}

TEST(doctor_text, splits_lines_and_words) {
    EXPECT_EQ(lines_of("a\n\nb").size(), 3U);
    EXPECT_EQ(words_of(" a\t b ").size(), 2U);
    EXPECT_EQ(trimmed(" a \n"), "a");
    EXPECT_EQ(trimmed(" \n"), "");
}

TEST(doctor_text, missing_file_and_directory_are_empty) {
    EXPECT_EQ(text_of_file("/proc/none"), "");
    EXPECT_EQ(text_of_file("/"), "");
}

}  // namespace
}  // namespace sluice::cli::doctor

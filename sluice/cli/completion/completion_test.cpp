#include "sluice/cli/completion/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using testing::IsEmpty;

help_option operand(std::string name, bool is_repeatable = false) {
    return {
        .names = std::move(name), .is_operand = true, .is_required = true, .is_repeatable = is_repeatable};
}

help_page program() {
    help_page all{.command = "x", .what = "do"};
    all.options = {{.names = "--version", .what = "print the version and exit"}};
    help_page put{.command = "x put", .what = "copy files"};
    put.options = {operand("SOURCE... URL", true),
                   {.names = "-r, --recursive"},
                   {.names = "-c, --config", .value = "FILE"},
                   {.names = "--from", .value = "DIR"},
                   {.names = "--dialect", .value = "VERSION", .choices = {"2.1", "3.0"}},
                   {.names = "--compression", .value = "off|on"}};
    help_page user{.command = "x user", .what = "manage users"};
    user.options = {{.names = "--users-file", .value = "FILE"}};
    user.subcommands = {{.command = "x user add"}, {.command = "x user list"}};
    user.subcommands[0].options = {operand("NAME"), {.names = "--nt-hash"}};
    help_page lock{.command = "x lock", .operands = "LOCKFILE [--] COMMAND [ARGUMENT...]"};
    lock.options = {{.names = "-w, --timeout", .value = "SECONDS"}};
    help_page serve{.command = "x serve", .operands = "[NAME=]PATH..."};
    help_page shell{.command = "x shell"};
    shell.options = {operand("SHELL")};
    shell.options[0].choices = {"bash", "zsh"};
    all.subcommands = {put, user, lock, serve, shell, {.command = "x help", .operands = "[COMMAND]..."}};
    return all;
}

// Returns the completion of a line, as its words and the names that the shell adds: "words", or
// "words :files PREFIX".
std::string completed(const std::vector<std::string>& words) {
    const completion found = complete(program(), words);
    std::string text;
    for (const completion_candidate& each : found.candidates)
        text += each.word + ' ';
    const completion rest{.also = found.also, .before_path = found.before_path};
    const std::string also = completion_text(rest);
    return also == ":none\n" ? text : text + also.substr(0, also.size() - 1);
}

TEST(completion, first_word_is_a_command_or_an_option_of_the_program) {
    EXPECT_EQ(completed({""}), "put user lock serve shell help ");
    EXPECT_EQ(completed({"s"}), "serve shell ");
    EXPECT_EQ(completed({"--"}), "--version --help ");
}

TEST(completion, options_are_those_of_the_command_and_of_the_command_above_it) {
    EXPECT_EQ(completed({"user", "add", "--"}), "--users-file --nt-hash --help ");
    EXPECT_EQ(completed({"user", ""}), "add list ");
    EXPECT_EQ(completed({"user", "add", ""}), "");
    EXPECT_EQ(completed({"put", "-"}),
              "-r --recursive -c --config --from --dialect --compression -h --help ");
}

TEST(completion, value_of_an_option_is_a_choice_or_a_file_or_unknown) {
    EXPECT_EQ(completed({"put", "--dialect", ""}), "2.1 3.0 ");
    EXPECT_EQ(completed({"put", "--dialect=3"}), "--dialect=3.0 ");
    EXPECT_EQ(completed({"put", "--compression", "o"}), "off on ");
    EXPECT_EQ(completed({"put", "--config", "a"}), ":files ");
    EXPECT_EQ(completed({"put", "-rc", "a"}), ":files ");
    EXPECT_EQ(completed({"put", "--config=a/b"}), ":files --config=");
    EXPECT_EQ(completed({"put", "--from", ""}), ":directories ");
    EXPECT_EQ(completed({"lock", "-w", ""}), "");
    EXPECT_EQ(completed({"put", "--unknown=a"}), "");
}

TEST(completion, operand_is_a_file_or_a_url_or_a_choice) {
    EXPECT_EQ(completed({"put", ""}), ":files ");
    EXPECT_EQ(completed({"put", "smb"}), ":files ");
    EXPECT_EQ(completed({"put", "a", "smb"}), "smb:// :files ");
    EXPECT_EQ(completed({"put", "-c", "a", "b", "c", ""}), ":files ");
    EXPECT_EQ(completed({"put", "--", "-"}), ":files ");
    EXPECT_EQ(completed({"shell", ""}), "bash zsh ");
    EXPECT_EQ(completed({"serve", "a=", "docs=b"}), ":files docs=");
}

TEST(completion, command_after_a_lock_file_has_its_own_arguments) {
    EXPECT_EQ(completed({"lock", ""}), ":files ");
    EXPECT_EQ(completed({"lock", "file", "l"}), ":commands");
    EXPECT_EQ(completed({"lock", "file", "--", "l"}), ":commands");
    EXPECT_EQ(completed({"lock", "file", "ls", "--"}), ":files ");
}

TEST(completion, help_completes_names_of_commands_only) {
    EXPECT_EQ(completed({"help", "user", ""}), "add list ");
    EXPECT_EQ(completed({"help", "p"}), "put ");
    EXPECT_EQ(completed({"help", "unknown", ""}), "");
}

TEST(completion, nothing_completes_an_unknown_command_or_no_word) {
    EXPECT_THAT(complete(program(), {}).candidates, IsEmpty());
    EXPECT_EQ(completed({"unknown", ""}), "");
    EXPECT_EQ(completed({"put", "a", "b", "c", "-r", "--"}).substr(0, 12), "--recursive ");
}

TEST(completion, text_has_a_line_per_candidate_and_one_for_the_shell) {
    EXPECT_EQ(completion_text({.candidates = {{"-r", "copy"}, {"put", ""}}}), "-r\tcopy\nput\t\n:none\n");
    EXPECT_EQ(completion_text({.also = completion::source::directories, .before_path = "--from="}),
              ":directories --from=\n");
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/cli/help_text.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

help_page copying() {
    help_page page{.command = "sluice get", .what = "copy files from an SMB server"};
    page.options = {
        {.names = "URL", .what = "smb://HOST/SHARE/PATH", .is_operand = true, .is_required = true},
        {.names = "TARGET", .what = "local file", .is_operand = true},
        {.names = "-r, --recursive", .what = "copy directories recursively"},
        {.names = "--channels",
         .value = "N",
         .what = "connections",
         .range = "1-32",
         .present_default = "1",
         .group = "Network"}};
    page.examples = {"sluice get smb://alice@server/photos/one.jpg"};
    return page;
}

TEST(help_text, lists_operands_options_by_group_and_examples) {
    EXPECT_EQ(copying().text("Exit status: 0 success."),
              "Usage: sluice get [OPTIONS] URL [TARGET]\n"
              "\n"
              "Copy files from an SMB server.\n"
              "\n"
              "Arguments:\n"
              "  URL                       smb://HOST/SHARE/PATH\n"
              "  TARGET                    local file\n"
              "\n"
              "Options:\n"
              "  -r, --recursive           copy directories recursively\n"
              "\n"
              "Network:\n"
              "  --channels N              connections [1-32] [default: 1]\n"
              "  -h, --help                print this help and exit\n"
              "\n"
              "Examples:\n"
              "  sluice get smb://alice@server/photos/one.jpg\n"
              "\n"
              "Exit status: 0 success.\n");
}

TEST(help_text, wraps_long_descriptions_and_moves_them_below_long_names) {
    help_page page{.command = "x", .what = "do"};
    page.options = {{.names = "--advertise",
                     .value = "ADDRESS[,speed=RATE]",
                     .what = std::string(50, 'a') + " " + std::string(20, 'b')}};
    EXPECT_NE(
        page.text("").find("  --advertise ADDRESS[,speed=RATE]\n" + std::string(28, ' ') +
                           std::string(50, 'a') + "\n" + std::string(28, ' ') + std::string(20, 'b') + "\n"),
        std::string::npos);
}

TEST(help_text, puts_the_range_before_a_default_that_the_text_states) {
    help_page page{.command = "x", .what = "do"};
    page.options = {{.names = "--loops", .value = "N", .what = "threads [default: 0]", .range = "0-64"}};
    EXPECT_NE(page.text("").find("threads [0-64] [default: 0]\n"), std::string::npos);
}

TEST(help_text, ends_with_the_exit_status_that_only_this_command_has) {
    help_page page{.command = "x", .what = "do", .further_status = "4 volume damaged"};
    EXPECT_TRUE(
        page.text("Exit status: 0 success.").ends_with("\nExit status: 0 success, 4 volume damaged.\n"));
}

TEST(help_text, lists_subcommands_by_group) {
    help_page page{.command = "sluice", .what = "server and tools"};
    page.subcommands.push_back({.command = "sluice serve", .what = "serve directories", .group = "Server"});
    page.subcommands.push_back({.command = "sluice fat", .what = "work with images", .group = "Tools"});
    const std::string text = page.text("");
    EXPECT_NE(text.find("Usage: sluice COMMAND [OPTIONS]\n"), std::string::npos);
    EXPECT_NE(
        text.find("\nServer:\n  serve        serve directories\n\nTools:\n  fat          work with images\n"),
        std::string::npos);
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/cli/status/web/web_pages.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using namespace smb::server;

constexpr std::string_view hostile = "<script>x</script>\"'&";

[[nodiscard]] bool has(const std::string& page, std::string_view text) {
    return page.find(text) != std::string::npos;
}

void expect_no_script(const std::string& page) {
    for (const std::string_view sign : {"<script", "onload", "javascript:", "style=", "http://", "https://"})
        EXPECT_FALSE(has(page, sign)) << sign;
    EXPECT_TRUE(page.starts_with("<!doctype html>"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
}

[[nodiscard]] open_status open_of(std::uint64_t number) {
    open_status one;
    one.number = number;
    one.session = 7;
    one.share = hostile;
    one.path = hostile;
    one.stream = hostile;
    one.access = 0x3;
    return one;
}

TEST(web_pages, the_overview_escapes_every_name) {
    server_snapshot totals;
    totals.shares.push_back({.name = std::string(hostile), .source = std::string(hostile)});
    totals.addresses = {std::string(hostile)};
    totals.loops.push_back({.multiplexer = "epoll", .connections = 1});
    load_history history;
    for (int i = 0; i != 1000; ++i)
        history.add({.read_bytes = static_cast<double>(i), .requests = 1.0 / 0.0, .delay_ms = 2});
    const std::vector<finding> findings{{.severity = finding_severity::error,
                                         .what = std::string(hostile),
                                         .evidence = std::string(hostile),
                                         .hint = std::string(hostile)}};
    const std::vector<double> delays{1.5};
    const std::string page =
        overview_page({.server = hostile},
                      {.totals = totals, .history = history, .loop_delays_ms = delays, .findings = findings});
    expect_no_script(page);
    EXPECT_TRUE(has(page, "&lt;script&gt;x&lt;/script&gt;&quot;&#39;&amp;"));
    EXPECT_TRUE(has(page, "<polyline"));
    EXPECT_FALSE(has(page, "inf"));
    EXPECT_TRUE(has(page, "1.5 ms"));
}

TEST(web_pages, notes_are_folded_behind_the_findings_that_need_attention) {
    const server_snapshot totals;
    const load_history history;
    const std::vector<finding> all{{.severity = finding_severity::note, .what = "a fact"},
                                   {.severity = finding_severity::warning,
                                    .what = "a defect",
                                    .evidence = "an observation",
                                    .hint = "a remedy"},
                                   {.severity = finding_severity::error, .what = "an error"}};
    const auto page_of = [&](std::span<const finding> some) {
        return overview_page({.server = "S"},
                             {.totals = totals, .history = history, .loop_delays_ms = {}, .findings = some});
    };
    const std::string page = page_of(all);
    const std::size_t folded = page.find("<details>");
    EXPECT_LT(page.find("an error"), page.find("a defect"));
    EXPECT_LT(page.find("a defect"), folded);
    EXPECT_LT(page.find("an observation"), folded);
    EXPECT_LT(page.find("a remedy"), folded);
    EXPECT_GT(page.find("a fact"), folded);
    EXPECT_FALSE(has(page, "Nothing needs attention"));
    EXPECT_TRUE(has(page_of(std::span(all).first(1)), "Nothing needs attention"));
    EXPECT_FALSE(has(page_of({}), "<details>"));
}

TEST(web_pages, lists_escape_every_name) {
    session_status session;
    session.id = 7;
    session.user = hostile;
    session.shares = {std::string(hostile)};
    session.channels.push_back(
        {.peer = std::string(hostile), .dialect = "3.1.1", .signing = {}, .cipher = {}, .traffic = {}});
    expect_no_script(sessions_page({.server = hostile}, {}, std::span(&session, 1), {}));
    const open_status one = open_of(1);
    const std::string page =
        files_page({.server = hostile}, {}, std::span(&one, 1), {{7, std::string(hostile)}});
    expect_no_script(page);
    EXPECT_TRUE(has(page, "read, write"));
}

TEST(web_pages, only_a_session_of_an_administrator_has_buttons) {
    const open_status one = open_of(18'446'744'073'709'551'615U);
    EXPECT_FALSE(has(files_page({.server = "S"}, {}, std::span(&one, 1), {}), "<form"));
    const std::string page = files_page({.server = "S", .form_token = "f0"}, {}, std::span(&one, 1), {});
    EXPECT_TRUE(has(page, "<form method=\"post\" action=\"/files/close\">"));
    EXPECT_TRUE(has(page, "name=\"form\" value=\"f0\""));
    EXPECT_TRUE(has(page, "name=\"number\" value=\"18446744073709551615\""));
}

TEST(web_pages, a_long_list_has_a_link_to_its_next_part) {
    const std::string page = files_page({.server = "S", .refresh_s = 5},
                                        {.all = 10'000, .after = 3, .last = 103, .has_more = true}, {}, {});
    EXPECT_TRUE(has(page, "10000 opens"));
    EXPECT_TRUE(has(page, "/files?after=103&amp;refresh=5"));
    EXPECT_TRUE(has(page, "http-equiv=\"refresh\" content=\"5\""));
    EXPECT_FALSE(has(files_page({.server = "S"}, {.all = 1}, {}, {}), "http-equiv=\"refresh\""));
}

TEST(web_pages, rejections_come_first_with_their_effect) {
    const std::vector<limit_row> rows{
        {.name = "a", .group = "g", .what = "never reached", .limit = 1, .when_reached = "x", .rejected = 0},
        {.name = "b",
         .group = "g",
         .what = "reached",
         .limit = 2,
         .when_reached = "the oldest is dropped",
         .rejected = 5},
        {.name = "c", .group = "g", .what = "not counted", .limit = 3}};
    const std::string page = rejections_page({.server = "S"}, 7, rows);
    EXPECT_LT(page.find(">reached<"), page.find("never reached"));
    EXPECT_TRUE(has(page, "the oldest is dropped"));
    EXPECT_FALSE(has(page, "not counted"));
    EXPECT_TRUE(has(page, "deny their address: <b>7</b>"));
}

TEST(web_pages, a_page_of_long_names_stays_small) {
    std::vector<open_status> opens(page_opens_max, open_of(1));
    for (open_status& one : opens)
        one.path = std::string(100'000, '<');
    EXPECT_LT(files_page({.server = "S", .form_token = "f"}, {}, opens, {}).size(), std::size_t{512} << 10);
}

TEST(load_history, the_oldest_sample_makes_room) {
    load_history history;
    EXPECT_EQ(history.size(), 0U);
    for (std::size_t i = 0; i != load_history::samples_max + 5; ++i)
        history.add({.requests = static_cast<double>(i)});
    EXPECT_EQ(history.size(), load_history::samples_max);
    EXPECT_EQ(history.at(0).requests, 5);
    EXPECT_EQ(history.at(load_history::samples_max - 1).requests, load_history::samples_max + 4);
}

TEST(findings_of_totals, stalls_and_reached_limits_are_found) {
    server_snapshot totals;
    std::vector<finding> found;
    add_findings_of(totals, found);
    EXPECT_TRUE(found.empty());
    totals.loop_stalls = 2;
    totals.in_use.rejections[static_cast<std::size_t>(limit::connections_without_session)] = 3;
    add_findings_of(totals, found);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].severity, finding_severity::error);
    EXPECT_EQ(found[1].what, "the limit of connections without a session was reached 3 times");
}

}  // namespace
}  // namespace sluice::cli

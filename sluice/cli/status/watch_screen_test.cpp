#include "sluice/cli/status/watch_screen.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace sluice::cli {
namespace {

[[nodiscard]] json_value document(const std::string& text) {
    std::optional<json_value> parsed = json_value::parse(text);
    EXPECT_TRUE(parsed.has_value()) << text;
    return parsed ? *std::move(parsed) : json_value{};
}

struct client {
    int id = 1;
    std::string user = "u";
    std::uint64_t read_bytes = 0;
};

[[nodiscard]] json_value server(std::uint64_t uptime_ms, const std::vector<client>& clients,
                                const std::string& more = "") {
    std::string sessions;
    std::uint64_t read_bytes = 0;
    for (const client& one : clients) {
        read_bytes += one.read_bytes;
        sessions += fmt::format(
            R"({}{{"id":{},"user":"{}","opens":2,"channels":[{{"peer":"192.0.2.{}:5","traffic":{{"requests":)"
            R"({{"read":{}}},"read_bytes":{},"written_bytes":0}}}}]}})",
            sessions.empty() ? "" : ",", one.id, one.user, one.id, one.read_bytes / 10, one.read_bytes);
    }
    return document(fmt::format(
        R"({{"format":"sluice-status","program":{{"version":"1.0"}},"server":{{"name":"FILES","uptime_s":{},"uptime_ms":{}}},)"
        R"("loops":[{{"delay_ms":0.1}},{{"delay_ms":25.5}}],"traffic":{{"requests":{{"read":{}}},"failures":0,)"
        R"("read_bytes":{},"written_bytes":0}},"counts":{{"sessions":{},"files":7}},"sessions":[{}]{}}})",
        uptime_ms / 1000, uptime_ms, read_bytes / 10, read_bytes, clients.size(), sessions, more));
}

[[nodiscard]] std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines)
        text += line + '\n';
    return text;
}

[[nodiscard]] std::size_t width_of(const std::string& line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

TEST(watch_screen, rates_are_the_differences_of_two_documents) {
    const auto lines =
        watch_screen(server(1000, {{.read_bytes = 1000}}), server(3000, {{.read_bytes = 9000}}), {});
    EXPECT_EQ(lines[1], "Read 4.0 kB/s  Written 0 B/s  Requests 400/s  Failed 0/s");
    EXPECT_NE(joined(lines).find("delay in ms 0.1 25.5"), std::string::npos);
}

TEST(watch_screen, the_client_with_most_traffic_is_the_first) {
    const auto lines = watch_screen(server(1000, {{.id = 1, .user = "alice"}, {.id = 2, .user = "bob"}}),
                                    server(2000, {{.id = 1, .user = "alice", .read_bytes = 10},
                                                  {.id = 2, .user = "bob", .read_bytes = 99'000}}),
                                    {});
    const std::string text = joined(lines);
    EXPECT_LT(text.find("bob"), text.find("alice"));
    EXPECT_NE(text.find("99.0 kB/s"), std::string::npos);
}

TEST(watch_screen, a_new_client_counts_from_zero_and_a_restart_shows_no_rates) {
    const auto lines = watch_screen(server(1000, {}), server(2000, {{.read_bytes = 5000}}), {});
    EXPECT_NE(joined(lines).find("5.0 kB/s"), std::string::npos);
    const auto restarted = watch_screen(server(90'000, {{.read_bytes = 5000}}), server(10, {}), {});
    EXPECT_EQ(restarted[1], "Read 0 B/s  Written 0 B/s  Requests 0/s  Failed 0/s");
}

TEST(watch_screen, guests_and_denied_addresses_are_shown) {
    const json_value before = document(R"({"format":"sluice-status","sessions":[],"counts":{}})");
    const json_value now =
        document(R"({"format":"sluice-status","sessions":[{"id":1,"user":"visitor","guest":true}],)"
                 R"("counts":{"denied_connections":12}})");
    const std::string text = joined(watch_screen(before, now, {}));
    EXPECT_NE(text.find("visitor (guest)"), std::string::npos) << text;
    EXPECT_NE(text.find("12  closed: allowed-host, denied-host"), std::string::npos) << text;
}

TEST(watch_screen, it_fits_every_size_of_screen) {
    std::vector<client> clients;
    for (int i = 0; i != 100; ++i)
        clients.push_back({.id = i, .user = fmt::format("user-with-a-very-long-name-{}", i)});
    const json_value now =
        server(2000, clients,
               R"(,"shares":[{"name":"a","source":"/srv/a","sessions":1,"files":1}],"limits":[)"
               R"({"what":"sessions","rejected":3,"when_reached":"rejected"}])");
    for (std::size_t rows = 0; rows != 60; ++rows)
        for (const std::size_t columns : {0, 1, 20, 40, 80, 200}) {
            const auto lines = watch_screen(now, now, {.rows = rows, .columns = columns});
            EXPECT_LE(lines.size(), rows);
            for (const std::string& line : lines)
                EXPECT_LE(width_of(line), columns) << line;
        }
}

TEST(watch_screen, short_lists_stay_complete_and_the_rest_of_a_long_one_is_counted) {
    std::vector<client> clients;
    for (int i = 0; i != 100; ++i)
        clients.push_back({.id = i});
    const json_value now =
        server(2000, clients,
               R"(,"limits":[{"what":"sessions of a client","rejected":3,"when_reached":"rejected"}])");
    const auto lines = watch_screen(now, now, {.rows = 24, .columns = 80});
    EXPECT_EQ(lines.size(), 24U);
    const std::string text = joined(lines);
    EXPECT_NE(text.find("sessions of a client      3  rejected"), std::string::npos) << text;
    const std::size_t more = text.find("and ");
    ASSERT_NE(more, std::string::npos);
    const auto shown = static_cast<std::size_t>(
        std::ranges::count_if(lines, [](const std::string& line) { return line.contains("192.0.2."); }));
    EXPECT_EQ(text.substr(more, text.find('\n', more) - more), fmt::format("and {} more", 100 - shown));
}

TEST(watch_screen, names_of_clients_cannot_control_the_terminal) {
    const auto now = server(1000, {{.user = R"(\u001b[2J\u009b1m\u202eevil\n)"}},
                            R"(,"opens":[{"kind":"file","path":"a\u001b]0;x\u0007","share":"s\u0085"}])");
    const std::string text = joined(watch_screen(now, now, {}));
    EXPECT_NE(text.find("?[2J?1m?evil?"), std::string::npos) << text;
    for (const std::string_view sign : {"\x1b", "\x07", "\xc2\x9b", "\xc2\x85", "\xe2\x80\xae"})
        EXPECT_EQ(text.find(sign), std::string::npos);
}

TEST(watch_screen, documents_without_members_are_shown_as_empty) {
    const json_value nothing = document("{}");
    EXPECT_FALSE(watch_screen(nothing, nothing, {}).empty());
}

}  // namespace
}  // namespace sluice::cli

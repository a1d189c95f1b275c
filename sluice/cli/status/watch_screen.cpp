#include "sluice/cli/status/watch_screen.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>

#include "sluice/cli/status/text_table.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

namespace {

// A list, with its heading and the number of entries that it does not show.
struct section {
    std::vector<std::string> lines;
    std::size_t left_out = 0;
};

[[nodiscard]] std::uint64_t requests_in(const json_value& traffic) noexcept {
    std::uint64_t sum = 0;
    for (const json_value& some : traffic["requests"].elements())
        sum += some.count();
    return sum;
}

// Returns an increase per second; 0 if the number has decreased, as after a restart.
[[nodiscard]] double rate(std::uint64_t before, std::uint64_t now, double seconds) noexcept {
    return now > before and seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

struct traffic_rates {
    double read_bytes = 0;
    double written_bytes = 0;
    double requests = 0;
    double failures = 0;
};
[[nodiscard]] traffic_rates rates_between(const json_value& before, const json_value& now, double seconds) {
    return {.read_bytes = rate(before["read_bytes"].count(), now["read_bytes"].count(), seconds),
            .written_bytes = rate(before["written_bytes"].count(), now["written_bytes"].count(), seconds),
            .requests = rate(requests_in(before), requests_in(now), seconds),
            .failures = rate(before["failures"].count(), now["failures"].count(), seconds)};
}

[[nodiscard]] double seconds_between(const json_value& before, const json_value& now) noexcept {
    const double from = before["server"]["uptime_ms"].number();
    const double to = now["server"]["uptime_ms"].number();
    return to > from ? (to - from) / 1000 : 0;
}

[[nodiscard]] std::string rate_text(double bytes_per_s) {
    return bytes_text(bytes_per_s) + "/s";
}

[[nodiscard]] std::string uptime_text(std::uint64_t seconds) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

[[nodiscard]] std::vector<std::string> heading(const json_value& before, const json_value& now,
                                               double seconds) {
    const json_value& server = now["server"];
    const json_value& counts = now["counts"];
    const traffic_rates all = rates_between(before["traffic"], now["traffic"], seconds);
    std::string delays;
    for (const json_value& loop : now["loops"].elements())
        delays += fmt::format(" {:.1f}", loop["delay_ms"].number());
    return {
        fmt::format("{}  up {}  version {}", terminal_text(server["name"].text()),
                    uptime_text(server["uptime_s"].count()), terminal_text(now["program"]["version"].text())),
        fmt::format("Read {}  Written {}  Requests {:.0f}/s  Failed {:.0f}/s", rate_text(all.read_bytes),
                    rate_text(all.written_bytes), all.requests, all.failures),
        fmt::format("Sessions {}  Connections {}  Open files {}  Opens {}  Locks {}  Leases {}",
                    counts["sessions"].count(), counts["connections"].count(), counts["files"].count(),
                    counts["opens"].count(), counts["locks"].count(), counts["leases"].count()),
        fmt::format("Event loops: delay in ms{}  slow turns {}  stalls {}", delays,
                    counts["loop_slow_turns"].count(), counts["loop_stalls"].count())};
}

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

// The channels of a session together, and the sum of their traffic before.
struct client_rates {
    const json_value* session = nullptr;
    traffic_rates rates;
};

[[nodiscard]] traffic_rates rates_of_channels(const json_value& before, const json_value& now,
                                              double seconds) {
    std::map<std::string_view, const json_value*> by_peer;
    for (const json_value& channel : before["channels"].elements())
        by_peer.emplace(channel["peer"].text(), &channel["traffic"]);
    traffic_rates sum;
    const json_value nothing;
    for (const json_value& channel : now["channels"].elements()) {
        const auto found = by_peer.find(channel["peer"].text());
        const traffic_rates one =
            rates_between(found == by_peer.end() ? nothing : *found->second, channel["traffic"], seconds);
        sum.read_bytes += one.read_bytes;
        sum.written_bytes += one.written_bytes;
        sum.requests += one.requests;
    }
    return sum;
}

// Returns the clients, those with most bytes first, then those with most requests.
[[nodiscard]] std::vector<client_rates> clients_in(const json_value& before, const json_value& now,
                                                   double seconds) {
    std::map<std::uint64_t, const json_value*> by_id;
    for (const json_value& one : before["sessions"].elements())
        by_id.emplace(one["id"].count(), &one);
    const json_value nothing;
    std::vector<client_rates> all;
    for (const json_value& one : now["sessions"].elements()) {
        const auto found = by_id.find(one["id"].count());
        all.push_back(
            {.session = &one,
             .rates = rates_of_channels(found == by_id.end() ? nothing : *found->second, one, seconds)});
    }
    std::ranges::sort(all, [](const client_rates& a, const client_rates& b) {
        const double bytes_a = a.rates.read_bytes + a.rates.written_bytes;
        const double bytes_b = b.rates.read_bytes + b.rates.written_bytes;
        if (bytes_a != bytes_b) return bytes_a > bytes_b;
        if (a.rates.requests != b.rates.requests) return a.rates.requests > b.rates.requests;
        return (*a.session)["id"].count() < (*b.session)["id"].count();
    });
    return all;
}

[[nodiscard]] section clients(const json_value& before, const json_value& now, double seconds,
                              const screen_size& size) {
    text_table table({{"CLIENT", column_kind::stretched},
                      {"PEER", column_kind::stretched},
                      {"READ", column_kind::number},
                      {"WRITTEN", column_kind::number},
                      {"REQUESTS", column_kind::number},
                      {"OPENS", column_kind::number}},
                     size.columns);
    const std::vector<client_rates> all = clients_in(before, now, seconds);
    const std::size_t shown = std::min(all.size(), size.rows);
    for (std::size_t i = 0; i != shown; ++i) {
        const json_value& one = *all[i].session;
        const auto& channels = one["channels"].elements();
        const std::string user = one["anonymous"].is_true() ? "(anonymous)"
                                 : one["guest"].is_true()   ? one["user"].text() + " (guest)"
                                                            : one["user"].text();
        table.add({user, channels.empty() ? "" : channels.front()["peer"].text(),
                   rate_text(all[i].rates.read_bytes), rate_text(all[i].rates.written_bytes),
                   fmt::format("{:.0f}/s", all[i].rates.requests), std::to_string(one["opens"].count())});
    }
    return {.lines = lines_of(table.text()), .left_out = all.size() - shown};
}

[[nodiscard]] section shares(const json_value& now, const screen_size& size) {
    text_table table({{"SHARE", column_kind::stretched},
                      {"SESSIONS", column_kind::number},
                      {"FILES", column_kind::number},
                      {"SOURCE", column_kind::stretched}},
                     size.columns);
    const auto& all = now["shares"].elements();
    const std::size_t shown = std::min(all.size(), size.rows);
    for (std::size_t i = 0; i != shown; ++i)
        table.add({all[i]["name"].text(), std::to_string(all[i]["sessions"].count()),
                   std::to_string(all[i]["files"].count()), all[i]["source"].text()});
    return {.lines = lines_of(table.text()), .left_out = all.size() - shown};
}

[[nodiscard]] section opens(const json_value& now, const screen_size& size) {
    text_table table({{"OPEN FILE", column_kind::stretched}, {"SHARE"}, {"LOCKS", column_kind::number}},
                     size.columns);
    const auto& all = now["opens"].elements();
    const std::size_t shown = std::min(all.size(), size.rows);
    for (std::size_t i = 0; i != shown; ++i) {
        const std::string path = all[i]["kind"].text() == "pipe" ? "(pipe)" : all[i]["path"].text();
        table.add({path, all[i]["share"].text(), std::to_string(all[i]["locks"].count())});
    }
    return {.lines = lines_of(table.text()), .left_out = all.size() - shown};
}

[[nodiscard]] section rejections(const json_value& now, const screen_size& size) {
    text_table table({{"REJECTIONS", column_kind::stretched},
                      {"TIMES", column_kind::number},
                      {"EFFECT", column_kind::stretched}},
                     size.columns);
    for (const json_value& one : now["limits"].elements())
        if (one["rejected"].count() != 0)
            table.add(
                {one["what"].text(), std::to_string(one["rejected"].count()), one["when_reached"].text()});
    if (const std::uint64_t denied = now["counts"]["denied_connections"].count(); denied != 0)
        table.add({"denied addresses", std::to_string(denied), "closed: allowed-host, denied-host"});
    return {.lines = lines_of(table.text())};
}

// Takes lines from the longest sections until all fit. An empty line comes before each section.
void fit(std::vector<section>& sections, std::size_t rows) {
    std::erase_if(sections, [](const section& one) { return one.lines.empty(); });
    const auto height = [](const section& one) { return 1 + one.lines.size() + (one.left_out != 0 ? 1 : 0); };
    const auto all = [&] {
        return std::accumulate(sections.begin(), sections.end(), std::size_t{0},
                               [&](std::size_t sum, const section& one) { return sum + height(one); });
    };
    while (not sections.empty() and all() > rows) {
        const auto longest =
            std::ranges::max_element(sections, {}, [](const section& one) { return one.lines.size(); });
        constexpr std::size_t lines_min = 2;  // the heading and an entry
        if (longest->lines.size() <= lines_min) {
            sections.pop_back();
            continue;
        }
        longest->lines.pop_back();
        ++longest->left_out;
    }
}

}  // namespace

std::string fitting_line(std::string_view line, std::size_t columns) {
    std::size_t at = 0;
    for (std::size_t width = 0; at != line.size(); ++at) {
        const bool begins_character = (static_cast<unsigned char>(line[at]) & 0xc0U) != 0x80U;
        if (begins_character and width++ == columns) break;
    }
    return std::string(line.substr(0, at));
}

std::vector<std::string> watch_screen(const json_value& before, const json_value& now,
                                      const screen_size& size) {
    const double seconds = seconds_between(before, now);
    std::vector<std::string> lines = heading(before, now, seconds);
    std::vector<section> sections;
    sections.push_back(clients(before, now, seconds, size));
    sections.push_back(rejections(now, size));
    sections.push_back(shares(now, size));
    sections.push_back(opens(now, size));
    fit(sections, size.rows - std::min(size.rows, lines.size()));
    for (const section& one : sections) {
        lines.emplace_back();
        lines.insert(lines.end(), one.lines.begin(), one.lines.end());
        if (one.left_out != 0) lines.push_back(fmt::format("and {} more", one.left_out));
    }
    if (lines.size() > size.rows) lines.resize(size.rows);
    for (std::string& line : lines)
        line = fitting_line(line, size.columns);
    return lines;
}

}  // namespace sluice::cli

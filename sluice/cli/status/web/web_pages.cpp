#include "sluice/cli/status/web/web_pages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "sluice/cli/status/text_table.hpp"
#include "sluice/cli/status/time_text.hpp"
#include "sluice/cli/status/web/load_chart.hpp"
#include "sluice/cli/status/web/page_frame.hpp"

namespace sluice::cli {

using namespace smb::server;

namespace {

[[nodiscard]] std::string rate_text(double bytes_per_s) {
    return bytes_text(bytes_per_s) + "/s";
}
[[nodiscard]] std::string requests_text(double per_s) {
    return fmt::format("{:.0f}/s", per_s);
}
[[nodiscard]] std::string milliseconds_text(double ms) {
    return fmt::format("{:.1f} ms", ms);
}

void add_card(html_writer& to, markup name, std::string_view value) {
    to.add("<div><span>").add(name).add("</span><b>").text(value).add("</b></div>");
}

void add_cards(html_writer& to, const server_snapshot& totals) {
    to.add("<div class=\"cards\">");
    add_card(to, "Connections", std::to_string(totals.in_use.connections));
    add_card(to, "Sessions", std::to_string(totals.in_use.sessions));
    add_card(to, "Open files", std::to_string(totals.files));
    add_card(to, "Opens", std::to_string(totals.in_use.opens));
    add_card(to, "Leases", std::to_string(totals.leases));
    add_card(to, "Read so far", bytes_text(static_cast<double>(totals.traffic.read_bytes)));
    add_card(to, "Written so far", bytes_text(static_cast<double>(totals.traffic.written_bytes)));
    add_card(to, "Requests so far", std::to_string(totals.traffic.requests_of_all()));
    add_card(to, "Failed requests", std::to_string(totals.traffic.failures));
    to.add("</div>");
}

void add_charts(html_writer& to, const load_history& history) {
    static constexpr std::array throughput{chart_line{"read", "one", &load_sample::read_bytes},
                                           chart_line{"written", "two", &load_sample::written_bytes}};
    static constexpr std::array requests{chart_line{"requests", "one", &load_sample::requests}};
    static constexpr std::array delay{chart_line{"slowest loop", "one", &load_sample::delay_ms}};
    to.add("<div class=\"charts\">");
    draw_chart(to, {.title = "Throughput", .lines = throughput, .text_of = rate_text}, history);
    draw_chart(to, {.title = "Requests", .lines = requests, .text_of = requests_text}, history);
    draw_chart(to, {.title = "Delay of event loops", .lines = delay, .text_of = milliseconds_text}, history);
    to.add("</div><p class=\"quiet\">The last five minutes, one sample a second.</p>");
}

[[nodiscard]] markup class_of(finding_severity severity) noexcept {
    switch (severity) {
        case finding_severity::error:
            return "error";
        case finding_severity::warning:
            return "warning";
        case finding_severity::info:
            return "info";
        case finding_severity::note:
            return "note";
    }
    return "note";
}

void add_finding(html_writer& to, const finding& one) {
    to.add("<li class=\"").add(class_of(one.severity)).add("\">").text(one.what);
    if (not one.evidence.empty()) to.add("<br><span class=\"quiet\">").text(one.evidence).add("</span>");
    if (not one.hint.empty()) to.add("<br><span class=\"quiet\">→ ").text(one.hint).add("</span>");
    to.add("</li>");
}

void add_findings_of(html_writer& to, finding_severity wanted, std::span<const finding> findings) {
    for (const finding& each : findings)
        if (each.severity == wanted) add_finding(to, each);
}

// The worst ones come first. Notes are folded, because they need no attention.
void add_findings(html_writer& to, std::span<const finding> findings) {
    using enum finding_severity;
    const auto notes = static_cast<std::size_t>(std::ranges::count(findings, note, &finding::severity));
    to.add("<h3>Findings</h3>");
    if (findings.size() == notes) to.add("<p class=\"quiet\">Nothing needs attention.</p>");
    to.add("<ul>");
    for (const finding_severity each : {error, warning, info})
        add_findings_of(to, each, findings);
    to.add("</ul>");
    if (notes == 0) return;
    to.add("<details><summary>Other facts of this host: ").number(notes).add("</summary><ul>");
    add_findings_of(to, note, findings);
    to.add("</ul></details>");
}

void add_shares(html_writer& to, std::span<const share_status> shares) {
    to.add("<h3>Shares</h3><div class=\"table\"><table><tr><th>Share</th><th class=\"number\">Sessions</th>");
    to.add("<th class=\"number\">Open files</th><th>Source</th><th>Settings</th></tr>");
    for (const share_status& one : shares.first(std::min(shares.size(), page_shares_max))) {
        to.add("<tr><td>").text(one.name).add("</td><td class=\"number\">").number(one.trees);
        to.add("</td><td class=\"number\">").number(one.files).add("</td><td class=\"path\">");
        to.text(one.source).add("</td><td>").add(one.is_read_only ? markup("read-only ") : markup(""));
        to.add(one.requires_encryption ? markup("encrypted ") : markup(""));
        to.add(one.is_hidden ? markup("hidden") : markup("")).add("</td></tr>");
    }
    to.add("</table></div>");
    if (shares.size() > page_shares_max) to.add("<p>").number(shares.size()).add(" shares in all.</p>");
}

void add_loops(html_writer& to, std::span<const loop_status> loops, std::span<const double> delays_ms) {
    to.add("<h3>Event loops</h3><div class=\"table\"><table><tr><th>Loop</th><th>Multiplexer</th>");
    to.add("<th class=\"number\">Connections</th><th class=\"number\">Delay</th></tr>");
    for (std::size_t i = 0; i != loops.size(); ++i) {
        to.add("<tr><td>").number(i).add("</td><td>").text(loops[i].multiplexer);
        to.add("</td><td class=\"number\">").number(loops[i].connections).add("</td><td class=\"number\">");
        to.text(i < delays_ms.size() ? milliseconds_text(delays_ms[i]) : "").add("</td></tr>");
    }
    to.add("</table></div>");
}

[[nodiscard]] std::string duration_text(clock_source::duration passed) {
    const auto seconds = std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(passed).count(), 0);
    if (seconds < 60) return fmt::format("{} s", seconds);
    if (seconds < 3600) return fmt::format("{} min", seconds / 60);
    if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
    return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3600);
}

[[nodiscard]] std::string user_text(const session_status& one) {
    if (one.is_anonymous) return "(anonymous)";
    return one.user + (one.is_guest ? " (guest)" : "");
}

void add_session(html_writer& to, const page_view& view, const session_status& one,
                 clock_source::utc_time now) {
    traffic done;
    for (const channel_status& channel : one.channels)
        done += channel.traffic;
    to.add("<tr><td>").text(user_text(one)).add("</td><td>");
    for (const channel_status& channel : one.channels)
        to.text(channel.peer).add("<br>");
    to.add("</td><td>").text(one.channels.empty() ? "" : one.channels.front().dialect).add("</td><td>");
    to.text(one.state).add("</td><td>");
    constexpr std::size_t shares_max = 8;
    for (std::size_t i = 0; i != std::min(one.shares.size(), shares_max); ++i)
        to.text(one.shares[i]).add(" ");
    if (one.shares.size() > shares_max) to.add("…");
    to.add("</td><td class=\"number\">").number(one.opens).add("</td><td class=\"number\">");
    to.text(bytes_text(static_cast<double>(done.read_bytes))).add("</td><td class=\"number\">");
    to.text(bytes_text(static_cast<double>(done.written_bytes))).add("</td><td class=\"number\">");
    to.text(duration_text(now - one.since)).add("</td>");
    if (not view.form_token.empty()) {
        to.add("<td>");
        if (one.state != "in_progress") add_button(to, view, "/sessions/end", one.id, "Disconnect");
        to.add("</td>");
    }
    to.add("</tr>");
}

// Returns the rights of an open in words ([MS-SMB2] 2.2.13.1).
[[nodiscard]] std::string access_text(std::uint32_t access) {
    struct right {
        std::uint32_t bits;
        std::string_view name;
    };
    constexpr std::array rights{right{0x1, "read"}, right{0x2 | 0x4, "write"}, right{0x10000, "delete"}};
    std::string text;
    for (const right& each : rights)
        if ((access & each.bits) != 0) text += (text.empty() ? "" : ", ") + std::string(each.name);
    return text.empty() ? "attributes" : text;
}

[[nodiscard]] std::string path_text(const open_status& one) {
    if (one.is_pipe) return "(pipe)";
    std::string path = one.path + (one.is_directory ? "/" : "");
    if (not one.stream.empty()) path += ':' + one.stream;
    return path;
}

[[nodiscard]] std::string caching_text(const open_status& one) {
    using smb::wire::lease_state;
    if (one.caching == caching_kind::none) return "";
    std::string text = one.caching == caching_kind::oplock ? "oplock " : "lease ";
    if (smb::wire::has(one.cached, lease_state::read)) text += 'R';
    if (smb::wire::has(one.cached, lease_state::write)) text += 'W';
    if (smb::wire::has(one.cached, lease_state::handle)) text += 'H';
    return text + (one.is_breaking ? " breaking" : "");
}

void add_open(html_writer& to, const page_view& view, const open_status& one, std::string_view user) {
    to.add("<tr><td class=\"path\">").text(path_text(one)).add("</td><td>").text(one.share);
    to.add("</td><td>").text(one.session == 0 ? "(client is gone)" : user).add("</td><td>");
    to.text(access_text(one.access)).add("</td><td class=\"number\">").number(one.locks).add("</td><td>");
    to.text(caching_text(one)).add("</td>");
    if (not view.form_token.empty()) {
        to.add("<td>");
        if (not one.is_pipe) add_button(to, view, "/files/close", one.number, "Close");
        to.add("</td>");
    }
    to.add("</tr>");
}

}  // namespace

std::string overview_page(const page_view& view, const overview_facts& facts) {
    html_writer to;
    const server_snapshot& totals = facts.totals;
    begin_page(to, view, "Overview", "/");
    to.add("<p class=\"quiet\">Up ").text(duration_text(totals.taken_at - totals.started_at));
    to.add(", version ").text(SLUICE_VERSION).add(", listening at");
    constexpr std::size_t addresses_max = 16;
    for (std::size_t i = 0; i != std::min(totals.addresses.size(), addresses_max); ++i)
        to.add(" ").text(totals.addresses[i]);
    to.add("</p>");
    add_cards(to, totals);
    add_charts(to, facts.history);
    add_findings(to, facts.findings);
    add_shares(to, totals.shares);
    add_loops(to, totals.loops, facts.loop_delays_ms);
    end_page(to);
    return to.take();
}

std::string sessions_page(const page_view& view, const page_range& range,
                          std::span<const session_status> sessions, clock_source::utc_time now) {
    html_writer to;
    begin_page(to, view, "Sessions", "/sessions");
    add_range(to, range, view, "/sessions", "sessions");
    to.add("<div class=\"table\"><table><tr><th>User</th><th>Client</th><th>SMB</th><th>State</th>");
    to.add("<th>Shares</th><th class=\"number\">Opens</th><th class=\"number\">Read</th>");
    to.add("<th class=\"number\">Written</th><th class=\"number\">Age</th>");
    to.add(view.form_token.empty() ? markup("</tr>") : markup("<th></th></tr>"));
    for (const session_status& one : sessions)
        add_session(to, view, one, now);
    to.add("</table></div>");
    end_page(to);
    return to.take();
}

std::string files_page(const page_view& view, const page_range& range, std::span<const open_status> opens,
                       const std::map<std::uint64_t, std::string>& user_of_session) {
    html_writer to;
    begin_page(to, view, "Open files", "/files");
    add_range(to, range, view, "/files", "opens of files, directories and pipes");
    to.add("<div class=\"table\"><table><tr><th>Path</th><th>Share</th><th>User</th><th>Access</th>");
    to.add("<th class=\"number\">Locks</th><th>Caching</th>");
    to.add(view.form_token.empty() ? markup("</tr>") : markup("<th></th></tr>"));
    for (const open_status& one : opens) {
        const auto user = user_of_session.find(one.session);
        add_open(to, view, one, user == user_of_session.end() ? std::string_view() : user->second);
    }
    to.add("</table></div>");
    end_page(to);
    return to.take();
}

std::string rejections_page(const page_view& view, std::uint64_t denied_connections,
                            std::span<const limit_row> limits) {
    html_writer to;
    begin_page(to, view, "Rejections", "/rejections");
    to.add("<p>Connections that were closed because the settings <code>allowed-host</code> and ");
    to.add("<code>denied-host</code> deny their address: <b>").number(denied_connections);
    to.add("</b>. The log names the addresses.</p>");
    to.add("<p>Since the start of the server, at each limit whose rejections are counted:</p>");
    to.add("<div class=\"table\"><table><tr><th>Limit</th><th class=\"number\">Times</th><th>Effect</th>");
    to.add("<th class=\"number\">In use</th><th class=\"number\">At most</th><th>Unit</th></tr>");
    std::vector<const limit_row*> rows;
    for (const limit_row& row : limits)
        if (row.rejected) rows.push_back(&row);
    std::ranges::sort(rows, [](const limit_row* a, const limit_row* b) {
        return *a->rejected != *b->rejected ? *a->rejected > *b->rejected : a->what < b->what;
    });
    for (const limit_row* const row : rows) {
        to.add("<tr><td>").text(row->what).add("</td><td class=\"number\">").number(*row->rejected);
        to.add("</td><td>").text(row->when_reached).add("</td><td class=\"number\">");
        to.text(row->in_use ? std::to_string(*row->in_use) : "–").add("</td><td class=\"number\">");
        to.number(row->limit).add("</td><td>").text(row->unit).add("</td></tr>");
    }
    to.add("</table></div>");
    end_page(to);
    return to.take();
}

}  // namespace sluice::cli

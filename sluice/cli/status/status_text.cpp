#include "sluice/cli/status/status_text.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "sluice/cli/status/text_table.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

[[nodiscard]] std::string duration_text(std::uint64_t seconds) {
    if (seconds < 60) return fmt::format("{} s", seconds);
    if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
    if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
    return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3600);
}

[[nodiscard]] std::string texts(const json_value& list) {
    std::vector<std::string> all;
    for (const json_value& one : list.elements())
        all.push_back(one.text());
    return fmt::format("{}", fmt::join(all, ", "));
}

[[nodiscard]] std::string heading(const json_value& document) {
    const json_value& server = document["server"];
    std::string text = fmt::format("{}  up {}, process {}, version {}\n", server["name"].text(),
                                   duration_text(server["uptime_s"].count()),
                                   document["program"]["pid"].count(), document["program"]["version"].text());
    text += fmt::format("Listening   {}\n", texts(server["addresses"]));
    for (const json_value& loop : document["loops"].elements())
        text += fmt::format("Loop        {}, {}\n", loop["multiplexer"].text(),
                            plural(loop["connections"].count(), "connection", "connections"));
    return text;
}

[[nodiscard]] std::string counts(const json_value& of) {
    return fmt::format(
        "Clients     {}, {}\nFiles       {} open {}; {}, {}, {}; {} opens without client\n",
        plural(of["connections"].count(), "connection", "connections"),
        plural(of["sessions"].count(), "session", "sessions"), of["files"].count(),
        plural(of["opens"].count(), "time", "times"), plural(of["locks"].count(), "lock", "locks"),
        plural(of["leases"].count(), "lease", "leases"), plural(of["oplocks"].count(), "oplock", "oplocks"),
        of["opens_without_client"].count());
}

[[nodiscard]] std::string throughput(const json_value& document) {
    text_table table({{"THROUGHPUT"},
                      {"READ", column_kind::number},
                      {"READS", column_kind::number},
                      {"WRITTEN", column_kind::number},
                      {"WRITES", column_kind::number},
                      {"REQUESTS", column_kind::number}});
    for (const json_value& rate : document["rates"].elements())
        table.add({fmt::format("each of the last {:.0f} s", rate["seconds"].number()),
                   bytes_text(rate["read_bytes_per_s"].number()),
                   fmt::format("{:.0f}", rate["reads_per_s"].number()),
                   bytes_text(rate["written_bytes_per_s"].number()),
                   fmt::format("{:.0f}", rate["writes_per_s"].number()),
                   fmt::format("{:.0f}", rate["requests_per_s"].number())});
    const json_value& done = document["traffic"];
    std::uint64_t requests = 0;
    for (const json_value& some : done["requests"].elements())
        requests += some.count();
    table.add({"since the start", bytes_text(done["read_bytes"].number()),
               std::to_string(done["requests"]["read"].count()), bytes_text(done["written_bytes"].number()),
               std::to_string(done["requests"]["write"].count()), std::to_string(requests)});
    return table.text();
}

[[nodiscard]] std::string paths(const json_value& list) {
    text_table table({{"DATA PATH"}, {"REQUESTS", column_kind::number}, {"BYTES", column_kind::number}});
    for (const json_value& one : list.elements())
        table.add(
            {one["name"].text(), std::to_string(one["requests"].count()), bytes_text(one["bytes"].number())});
    return table.text();
}

constexpr std::size_t idle_shares_max = 50;

// Many users may have a share of their own, of which few are in use.
[[nodiscard]] std::string shares(const json_value& list) {
    const bool omits_idle = list.elements().size() > idle_shares_max;
    std::size_t omitted = 0;
    text_table table({{"SHARE"},
                      {"SESSIONS", column_kind::number},
                      {"FILES", column_kind::number},
                      {"SOURCE", column_kind::stretched}});
    for (const json_value& one : list.elements()) {
        if (omits_idle and one["sessions"].count() == 0 and one["files"].count() == 0) {
            ++omitted;
            continue;
        }
        const std::string note = std::string(one["read_only"].is_true() ? " (read-only)" : "") +
                                 (one["requires_encryption"].is_true() ? " (encrypted)" : "");
        table.add({one["name"].text(), std::to_string(one["sessions"].count()),
                   std::to_string(one["files"].count()), one["source"].text() + note});
    }
    if (omitted == 0) return table.text();
    return table.text() +
           fmt::format("{} shares without sessions are not shown; use --json for all\n", omitted);
}

[[nodiscard]] std::string user_text(const json_value& session) {
    if (session["anonymous"].is_true()) return "(anonymous)";
    return session["user"].text() + (session["guest"].is_true() ? " (guest)" : "");
}

[[nodiscard]] std::string sessions(const json_value& list) {
    text_table table({{"USER"},
                      {"PEER", column_kind::stretched},
                      {"SMB"},
                      {"STATE"},
                      {"SHARES", column_kind::stretched},
                      {"OPENS", column_kind::number},
                      {"READ", column_kind::number},
                      {"WRITTEN", column_kind::number}});
    for (const json_value& one : list.elements()) {
        bool is_first = true;
        for (const json_value& channel : one["channels"].elements()) {
            const json_value& done = channel["traffic"];
            table.add({is_first ? user_text(one) : "", channel["peer"].text(), channel["dialect"].text(),
                       is_first ? one["state"].text() : "channel", is_first ? texts(one["shares"]) : "",
                       is_first ? std::to_string(one["opens"].count()) : "",
                       bytes_text(done["read_bytes"].number()), bytes_text(done["written_bytes"].number())});
            is_first = false;
        }
    }
    return table.text();
}

[[nodiscard]] std::string opens(const json_value& list) {
    text_table table({{"OPEN", column_kind::number},
                      {"SESSION", column_kind::number},
                      {"SHARE"},
                      {"CACHED"},
                      {"LOCKS", column_kind::number},
                      {"PATH", column_kind::stretched}});
    for (const json_value& one : list.elements()) {
        const json_value& caching = one["caching"];
        const std::string stream = one["stream"].text();
        std::string path = one["kind"].text() == "pipe" ? "(pipe)" : one["path"].text();
        if (one["kind"].text() == "directory") path += '/';
        if (not stream.empty()) path += ':' + stream;
        table.add({std::to_string(one["number"].count()), std::to_string(one["session"].count()),
                   one["share"].text(),
                   caching.is_object() ? caching["kind"].text() + ' ' + caching["state"].text() : "",
                   std::to_string(one["locks"].count()), path});
    }
    return table.text();
}

[[nodiscard]] std::string limits(const json_value& list) {
    text_table table({{"LIMIT"}, {"IN USE", column_kind::number}, {"AT MOST", column_kind::number}, {""}});
    for (const json_value& one : list.elements())
        if (one["in_use"].is_number())
            table.add({one["what"].text(), std::to_string(one["in_use"].count()),
                       std::to_string(one["limit"].count()), one["unit"].text()});
    return table.text();
}

// Returns the rejections, if there were any.
[[nodiscard]] std::string rejections(const json_value& list) {
    text_table table({{"LIMIT REACHED"}, {"TIMES", column_kind::number}});
    for (const json_value& one : list.elements())
        if (one["rejected"].is_number() and one["rejected"].count() != 0)
            table.add({one["what"].text(), std::to_string(one["rejected"].count())});
    return table.text();
}

// Returns the last clients that were refused, the newest last, if there were any.
[[nodiscard]] std::string refusals(const json_value& list) {
    text_table table({{"REFUSED AT"}, {"CLIENT"}, {"REASON", column_kind::stretched}});
    for (const json_value& one : list.elements())
        table.add({one["at"].text(), one["peer"].text(), refusal_reason(one)});
    return table.text();
}

}  // namespace

std::string refusal_reason(const json_value& refusal) {
    std::string text = refusal["event"].text();
    if (const std::string user = refusal["user"].text(); not user.empty())
        text += fmt::format(", user '{}'", user);
    if (const std::string share = refusal["share"].text(); not share.empty())
        text += fmt::format(", share '{}'", share);
    const std::string why = refusal["why"].text();
    return why.empty() ? text : text + ": " + why;
}

std::string status_text(const json_value& document) {
    std::string text = heading(document) + counts(document["counts"]);
    for (const std::string& part :
         {throughput(document), paths(document["paths"]), shares(document["shares"]),
          sessions(document["sessions"]), opens(document["opens"]), limits(document["limits"]),
          rejections(document["limits"]), refusals(document["refusals"])})
        if (not part.empty()) text += '\n' + part;
    return text;
}

}  // namespace sluice::cli

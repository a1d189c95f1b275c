#include "sluice/cli/status/status_document.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/time_text.hpp"

namespace sluice::cli {

using namespace smb::server;

namespace {

[[nodiscard]] std::string text_of(clock_source::utc_time when) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
    return utc_text(iso_seconds, seconds.time_since_epoch().count()) + 'Z';
}

void write_identity(json_writer& to) {
    to.member("format", "sluice-status").member("version", status_version);
    to.key("program").begin_object();
    to.member("version", SLUICE_VERSION).member("pid", static_cast<unsigned>(::getpid())).end_object();
}

void write_texts(json_writer& to, std::string_view name, const std::vector<std::string>& texts) {
    to.key(name).begin_array();
    for (const std::string& text : texts)
        to.value(text);
    to.end_array();
}

void write_traffic(json_writer& to, const traffic& done) {
    to.key("traffic").begin_object();
    to.key("requests").begin_object();
    for (std::size_t i = 0; i != commands_count; ++i)
        if (done.requests[i] != 0)
            to.member(smb::wire::name_of(static_cast<smb::wire::command>(i)), done.requests[i]);
    to.end_object();
    to.member("failures", done.failures)
        .member("read_bytes", done.read_bytes)
        .member("written_bytes", done.written_bytes)
        .end_object();
}

void write_rates(json_writer& to, const rate_window& rates) {
    to.key("rates").begin_array();
    double reported_s = 0;
    for (const std::chrono::seconds length : {std::chrono::seconds(1), std::chrono::seconds(10)}) {
        const std::optional<traffic_rate> seen = rates.over(length);
        if (not seen or seen->seconds <= reported_s) continue;  // it has not run longer yet
        reported_s = seen->seconds;
        to.begin_object().member("seconds", seen->seconds);
        to.member("requests_per_s", seen->requests).member("reads_per_s", seen->reads);
        to.member("writes_per_s", seen->writes).member("read_bytes_per_s", seen->read_bytes);
        to.member("written_bytes_per_s", seen->written_bytes).end_object();
    }
    to.end_array();
}

void write_shares(json_writer& to, const std::vector<share_status>& shares) {
    to.key("shares").begin_array();
    for (const share_status& one : shares) {
        to.begin_object().member("name", one.name).member("source", one.source);
        to.member("read_only", one.is_read_only).member("requires_encryption", one.requires_encryption);
        to.member("hidden", one.is_hidden).member("sessions", one.trees).member("files", one.files);
        to.end_object();
    }
    to.end_array();
}

void write_loops(json_writer& to, const std::vector<loop_status>& loops, std::span<const double> delays_ms) {
    ENSURE(loops.size() == delays_ms.size(), "each loop has a delay");
    to.key("loops").begin_array();
    for (std::size_t i = 0; i != loops.size(); ++i) {
        to.begin_object().member("multiplexer", loops[i].multiplexer);
        to.member("connections", loops[i].connections).member("delay_ms", delays_ms[i]).end_object();
    }
    to.end_array();
}

void write_channel(json_writer& to, const channel_status& one) {
    to.begin_object().member("peer", one.peer).member("dialect", one.dialect);
    to.member("signing", one.signing).member("cipher", one.cipher).member("loop", one.loop);
    to.member("credits", one.credits).member("pending_requests", one.pending_requests);
    to.member("unsent_bytes", one.unsent_bytes);
    write_traffic(to, one.traffic);
    to.end_object();
}

[[nodiscard]] std::string text_of(smb::wire::lease_state cached) {
    using smb::wire::lease_state;
    std::string text;
    if (smb::wire::has(cached, lease_state::read)) text += 'R';
    if (smb::wire::has(cached, lease_state::write)) text += 'W';
    if (smb::wire::has(cached, lease_state::handle)) text += 'H';
    return text;
}

void write_caching(json_writer& to, const open_status& one) {
    if (one.caching == caching_kind::none) return;
    to.key("caching").begin_object();
    to.member("kind", one.caching == caching_kind::oplock ? "oplock" : "lease");
    to.member("state", text_of(one.cached)).member("breaking", one.is_breaking).end_object();
}

void write_locks(json_writer& to, const open_status& one) {
    to.member("locks", one.locks);
    if (one.first_locks.empty()) return;
    to.key("first_locks").begin_array();
    for (const locked_range& lock : one.first_locks)
        to.begin_object()
            .member("offset", lock.offset)
            .member("length", lock.length)
            .member("exclusive", lock.is_exclusive)
            .end_object();
    to.end_array();
}

}  // namespace

void write_status_head(json_writer& to, const server_snapshot& totals, const rate_window& rates,
                       std::span<const double> loop_delays_ms) {
    to.begin_object();
    write_identity(to);
    to.key("server").begin_object().member("name", totals.name);
    to.member("started_at", text_of(totals.started_at));
    const auto up = std::chrono::duration_cast<std::chrono::seconds>(totals.taken_at - totals.started_at);
    to.member("uptime_s", static_cast<std::uint64_t>(std::max(up.count(), std::int64_t{0})));
    const auto up_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(totals.taken_at - totals.started_at);
    to.member("uptime_ms", static_cast<std::uint64_t>(std::max(up_ms.count(), std::int64_t{0})));
    write_texts(to, "addresses", totals.addresses);
    to.end_object();
    write_loops(to, totals.loops, loop_delays_ms);
    write_shares(to, totals.shares);
    write_traffic(to, totals.traffic);
    write_rates(to, rates);
    to.key("paths").begin_array();
    for (const path_use& one : totals.paths)
        to.begin_object()
            .member("name", one.name)
            .member("requests", one.requests)
            .member("bytes", one.bytes)
            .end_object();
    to.end_array();
}

void write_session(json_writer& to, const session_status& one) {
    to.begin_object().member("id", one.id).member("user", one.user).member("domain", one.domain);
    to.member("state", one.state).member("guest", one.is_guest).member("anonymous", one.is_anonymous);
    to.member("has_keys", one.has_keys).member("requires_encryption", one.requires_encryption);
    to.member("since", text_of(one.since)).member("client", one.client);
    write_texts(to, "shares", one.shares);
    to.member("opens", one.opens);
    to.key("channels").begin_array();
    for (const channel_status& channel : one.channels)
        write_channel(to, channel);
    to.end_array().end_object();
}

void write_open(json_writer& to, const open_status& one) {
    to.begin_object().member("number", one.number).member("session", one.session);
    to.member("share", one.share).member("path", one.path).member("stream", one.stream);
    to.member("kind", one.is_pipe ? "pipe" : one.is_directory ? "directory" : "file");
    to.member("access", one.access).member("share_access", one.share_access);
    to.member("durable", one.is_durable).member("deletes_on_close", one.deletes_on_close);
    write_caching(to, one);
    write_locks(to, one);
    to.member("kept_changes", one.kept_changes).end_object();
}

void write_status_tail(json_writer& to, const server_snapshot& totals, const open_totals& opens) {
    limits_in_use fullest = totals.in_use;
    fullest.merge(opens.fullest);
    to.key("counts").begin_object();
    to.member("connections", fullest.connections).member("sessions", fullest.sessions);
    to.member("opens", fullest.opens).member("files", totals.files).member("locks", opens.locks);
    to.member("oplocks", opens.oplocks).member("leases", totals.leases);
    to.member("leased_opens", opens.leased).member("durable_opens", opens.durable);
    to.member("opens_without_client", opens.without_client).member("buffers", totals.buffers);
    to.member("denied_connections", totals.denied_connections);
    to.member("cross_loop_posts", totals.cross_loop_posts);
    to.member("loop_slow_turns", totals.loop_slow_turns);
    to.member("loop_stalls", totals.loop_stalls).end_object();
    to.key("limits").begin_array();
    for (const limit_row& row : limit_rows(fullest)) {
        to.begin_object().member("name", row.name).member("what", row.what).member("limit", row.limit);
        to.member("unit", row.unit).key("in_use");
        row.in_use ? to.value(*row.in_use) : to.null();
        to.key("in_use_of_client");
        row.of_client ? to.value(*row.of_client) : to.null();
        to.key("rejected");
        row.rejected ? to.value(*row.rejected) : to.null();
        to.member("when_reached", row.when_reached);
        to.end_object();
    }
    to.end_array().end_object();
}

std::string status_refusal(std::string_view why) {
    json_writer to;
    to.begin_object();
    write_identity(to);
    to.member("error", why).end_object();
    return to.take() + "\n";
}

}  // namespace sluice::cli

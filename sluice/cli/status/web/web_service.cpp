#include "sluice/cli/status/web/web_service.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/open_totals.hpp"
#include "sluice/cli/status/web/web_address.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::cli {

using http::co_read_until;
using http::co_write_all;
using http::form_number;
using http::form_value;
using http::has_http_form;
using http::http_headers;
using http::http_method;
using http::http_request;
using http::http_request_bytes_max;
using http::http_status;
using http::parse_http_form;
using http::reason_of;
using smb::server::event_severity;
using smb::server::open_status;
using smb::server::server_snapshot;

namespace {

constexpr std::size_t web_connections_max = 32;
// With at most so many delayed replies at once, a client tries a few tokens a second.
constexpr std::chrono::seconds wrong_token_delay{1};
constexpr std::size_t delayed_max = 4;
// The overview waits so often for findings of this host that are being refreshed.
constexpr unsigned host_waits_max = 50;
constexpr std::chrono::milliseconds host_wait{20};
constexpr std::string_view wrong_token = "wrong token for the web page";

// No script runs, nothing is loaded from elsewhere, and no other page shows this one in a frame.
// With the referrer policy "no-referrer", browsers would not name the origin of a form.
constexpr std::string_view safety_headers =
    "Content-Security-Policy: default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\nConnection: close\r\n";

[[nodiscard]] unsigned refresh_of(std::string_view query) {
    const std::uint64_t seconds = form_number(query, "refresh").value_or(0);
    const bool is_valid = seconds >= refresh_seconds_min and seconds <= refresh_seconds_max;
    return is_valid ? static_cast<unsigned>(seconds) : 0;
}

[[nodiscard]] markup explanation_of(http_status status) noexcept {
    switch (status) {
        case http_status::unauthorized:
            return "Send the token of the administrator: 'Authorization: Bearer TOKEN'.";
        case http_status::forbidden:
            return "The form was not sent by a page of this server, or the session has ended. Open the page "
                   "again.";
        case http_status::not_found:
            return "This page does not exist.";
        case http_status::method_not_allowed:
            return "Use GET for pages, and POST for their forms.";
        case http_status::length_required:
            return "State the length of the form in the header Content-Length.";
        case http_status::unsupported_media_type:
            return "Send the form as application/x-www-form-urlencoded.";
        case http_status::misdirected_request:
            return "The Host header names another server. Use localhost, 127.0.0.1 or [::1].";
        case http_status::too_many_requests:
            return "Too many wrong tokens. Try again in a few seconds.";
        default:
            return "The request is not valid.";
    }
}

// Returns the numbers of a part of an ascending list.
[[nodiscard]] std::span<const std::uint64_t> part_of(std::span<const std::uint64_t> all, std::size_t most,
                                                     page_range& range) {
    const auto first = std::ranges::upper_bound(all, range.after);
    const std::span<const std::uint64_t> rest(first, all.end());
    const std::span<const std::uint64_t> part = rest.first(std::min(rest.size(), most));
    range.all = all.size();
    range.has_more = part.size() < rest.size();
    range.last = part.empty() ? 0 : part.back();
    return part;
}

[[nodiscard]] bool is_form(std::string_view content_type) noexcept {
    return content_type.substr(0, content_type.find(';')) == "application/x-www-form-urlencoded";
}

[[nodiscard]] std::string name_of_peer(const io::socket_handle& socket) {
    if (const auto account = socket.peer_credentials()) return fmt::format("uid {}", account->user);
    const auto peer = socket.peer_address();
    return peer ? peer->text() : "unknown";
}

[[nodiscard]] std::string session_cookie(std::string_view value, bool ends) {
    return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/{}", web_cookie_name, value,
                       ends ? "; Max-Age=0" : "");
}

}  // namespace

result<std::unique_ptr<web_service>> web_service::open(const dependencies& with, const io::socket_address& at,
                                                       std::string_view token) noexcept {
    // Only its owner may access a Unix socket from the first moment. No other thread creates files
    // yet.
    const mode_t before = ::umask(0177);
    auto listener = io::listening_socket_handle::listen(at, {.replace_stale = true});
    (void)::umask(before);
    if (not listener) return failure(listener.error());
    const auto bound = listener->local_address();
    if (not bound) return failure(bound.error());
    if (const auto attached = listener->set_multiplexer(&with.server.context().loop()); not attached)
        return failure(attached.error());
    return std::unique_ptr<web_service>(new web_service(with, *std::move(listener), *bound, token));
}

web_service::web_service(const dependencies& with, io::listening_socket_handle listener,
                         const io::socket_address& at, std::string_view token)
    : with_(with),
      at_(at),
      connections_(
          with.server.context().loop(), std::move(listener),
          [this](io::socket_handle& socket) { return answer(socket); }, web_connections_max) {
    if (not token.empty()) logons_.emplace(token, with.server.context().clock(), with.random);
}

web_service::~web_service() {
    if (const std::string path(at_.local_name()); not path.empty()) (void)::unlink(path.c_str());
}

std::string web_service::url() const {
    return (at_.family() == io::address_family::local ? "" : "http://") + at_.text();
}

io::task<void> web_service::answer(io::socket_handle& socket) noexcept {
    const std::string read = co_await co_read_until(socket, http_request_bytes_max, has_http_form);
    if (read.empty()) co_return;  // the client only checked that the port is open
    const http_request asked = parse_http_form(read);
    reply made{.status = asked.problem};
    if (asked.problem == http_status::ok and not is_own_host(asked.headers.host, at_))
        made.status = http_status::misdirected_request;
    if (made.status == http_status::ok) {
        visitor by = visitor_of(asked, socket);
        if (asked.method == http_method::post) {
            made = act(asked, by);
        } else {
            io::task<reply> making = page(asked, std::move(by));
            made = co_await std::move(making);
        }
    }
    if (made.body.empty() and made.status != http_status::see_other)
        made.body = problem_page(made.status, explanation_of(made.status));
    if (made.is_delayed) {
        ++delayed_;
        const auto slept = co_await io::co_sleep(with_.server.context().loop(), wrong_token_delay);
        --delayed_;
        if (not slept) co_return;
    }
    std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}",
                                   static_cast<unsigned>(made.status), reason_of(made.status), made.type,
                                   made.body.size(), safety_headers);
    if (not made.location.empty()) text += fmt::format("Location: {}\r\n", made.location);
    if (not made.cookie.empty()) text += fmt::format("Set-Cookie: {}\r\n", made.cookie);
    if (made.status == http_status::method_not_allowed) text += "Allow: GET, HEAD, POST\r\n";
    if (made.status == http_status::unauthorized) text += "WWW-Authenticate: Bearer\r\n";
    text += "\r\n";
    if (asked.method != http_method::head) text += made.body;
    (void)co_await co_write_all(socket, std::move(text));
}

web_service::visitor web_service::visitor_of(const http_request& asked, const io::socket_handle& socket) {
    visitor by{.may_see = not logons_.has_value(), .name = name_of_peer(socket)};
    if (not logons_) return by;
    constexpr std::string_view scheme = "Bearer ";
    if (asked.headers.authorization.starts_with(scheme)) {
        by.may_see =
            delayed_ < delayed_max and logons_->is_token(asked.headers.authorization.substr(scheme.size()));
        by.has_wrong_token = not by.may_see;
        if (by.has_wrong_token)
            with_.server.context().log().write(event_severity::warning, wrong_token, {{"peer", by.name}});
        by.is_program = by.may_see;
        by.name = "web page, program at " + by.name;
    } else if (const auto found = logons_->find(web_cookie_in(asked.headers.cookie))) {
        by.may_see = true;
        by.form_token = found->form_token;
        by.name = fmt::format("web page, session {} at {}", found->number, by.name);
    }
    return by;
}

io::task<web_service::reply> web_service::page(const http_request& asked, visitor by) noexcept {
    if (asked.path == "/style.css")
        co_return reply{.body = std::string(style_sheet()), .type = "text/css; charset=utf-8"};
    if (by.has_wrong_token) {
        if (delayed_ >= delayed_max) co_return reply{.status = http_status::too_many_requests};
        co_return reply{.status = http_status::unauthorized, .is_delayed = true};
    }
    const std::string& name = with_.server.context().configuration().name;
    if (asked.path == "/logon" and logons_) co_return reply{.body = logon_page(name, "")};
    const bool is_known = asked.path == "/" or asked.path == "/sessions" or asked.path == "/files" or
                          asked.path == "/rejections";
    if (not is_known) co_return reply{.status = http_status::not_found};
    if (not by.may_see) co_return reply{.status = http_status::see_other, .location = "/logon"};
    const page_view view{.server = name, .form_token = by.form_token, .refresh_s = refresh_of(asked.query)};
    if (asked.path == "/sessions") co_return sessions(asked, view);
    if (asked.path == "/rejections") {
        const server_snapshot totals = with_.server.snapshot({.has_totals = true});
        co_return reply{.body = rejections_page(view, totals.denied_connections, limit_rows(totals.in_use))};
    }
    io::task<reply> making = asked.path == "/" ? overview(view) : files(asked, view);
    reply made = co_await std::move(making);
    co_return made;
}

io::task<web_service::reply> web_service::overview(page_view view) noexcept {
    with_.host.refresh();
    for (unsigned waits = 0; with_.host.is_pending() and waits != host_waits_max; ++waits) {
        const auto slept = co_await io::co_sleep(with_.server.context().loop(), host_wait);
        if (not slept) co_return reply{};  // the server stops
    }
    const server_snapshot totals = with_.server.snapshot({.has_totals = true});
    const std::vector<finding> found = findings(totals);
    const std::vector<double> delays = with_.samples.loop_delays_ms();
    co_return reply{.body = overview_page(view, {.totals = totals,
                                                 .history = with_.samples.history(),
                                                 .loop_delays_ms = delays,
                                                 .findings = found})};
}

std::vector<finding> web_service::findings(const server_snapshot& totals) {
    std::vector<finding> all;
    add_findings_of(totals, all);
    with_.host.add_findings(all);
    if (not logons_ and at_.family() != io::address_family::local)
        all.push_back({.severity = finding_severity::info,
                       .what = "every account of this host can read this page",
                       .hint = "to prevent that, use --web unix:PATH or --web-token-file"});
    return all;
}

web_service::reply web_service::sessions(const http_request& asked, const page_view& view) {
    const server_snapshot totals = with_.server.snapshot({.has_totals = true});
    page_range range{.after = form_number(asked.query, "after").value_or(0)};
    const auto part = part_of(totals.session_ids, page_sessions_max, range);
    const server_snapshot seen = with_.server.snapshot({.sessions = part});
    return {.body = sessions_page(view, range, seen.sessions, totals.taken_at)};
}

io::task<web_service::reply> web_service::files(const http_request& asked, page_view view) noexcept {
    const server_snapshot totals = with_.server.snapshot({.has_totals = true});
    page_range range{.after = form_number(asked.query, "after").value_or(0)};
    std::vector<open_status> opens;
    std::vector<std::uint64_t> ids;
    for (auto left = part_of(totals.open_numbers, page_opens_max, range); not left.empty();) {
        const auto slice = left.first(std::min(left.size(), open_totals::slice_with_names));
        left = left.subspan(slice.size());
        server_snapshot seen = with_.server.snapshot({.has_names = true, .opens = slice});
        for (open_status& one : seen.opens) {
            ids.push_back(one.session);
            opens.push_back(std::move(one));
        }
        co_await io::yield(with_.server.context().loop());
    }
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    std::map<std::uint64_t, std::string> users;
    const server_snapshot seen = with_.server.snapshot({.sessions = ids});
    for (const auto& one : seen.sessions)
        users.emplace(one.id, one.is_anonymous ? "(anonymous)" : one.user);
    co_return reply{.body = files_page(view, range, opens, users)};
}

web_service::reply web_service::act(const http_request& asked, const visitor& by) {
    const http_headers& sent = asked.headers;
    if (not logons_) return {.status = http_status::method_not_allowed};
    if (not is_form(sent.content_type)) return {.status = http_status::unsupported_media_type};
    if (not is_own_form({.host = sent.host, .origin = sent.origin, .fetch_site = sent.fetch_site}))
        return {.status = http_status::forbidden};
    if (asked.path == "/logon") return log_on(asked, by);
    if (by.has_wrong_token and delayed_ >= delayed_max) return {.status = http_status::too_many_requests};
    if (not by.may_see) return {.status = http_status::unauthorized, .is_delayed = by.has_wrong_token};
    const std::string form_token = form_value(asked.body, "form").value_or("");
    const bool is_authentic =
        by.is_program or (not by.form_token.empty() and web_sessions::is_same(form_token, by.form_token));
    if (not is_authentic) return {.status = http_status::forbidden};
    if (asked.path == "/logoff") return log_off(asked);
    const std::optional<std::uint64_t> number = form_number(asked.body, "number");
    const bool is_action = asked.path == "/sessions/end" or asked.path == "/files/close";
    if (not is_action) return {.status = http_status::not_found};
    if (not number) return {.status = http_status::bad_request};
    if (asked.path == "/sessions/end") {
        // If it had ended before, the list shows that.
        (void)with_.server.end_session(*number, by.name);
        return {.status = http_status::see_other, .location = "/sessions"};
    }
    (void)with_.server.close_file(*number, by.name);
    return {.status = http_status::see_other, .location = "/files"};
}

web_service::reply web_service::log_on(const http_request& asked, const visitor& by) {
    ENSURE(logons_.has_value(), "only a page with a token has logons");
    if (delayed_ >= delayed_max) return {.status = http_status::too_many_requests};
    const std::string token = form_value(asked.body, "token").value_or("");
    smb::server::event_log& log = with_.server.context().log();
    if (not logons_->is_token(token)) {
        log.write(event_severity::warning, wrong_token, {{"peer", by.name}});
        return {.status = http_status::forbidden,
                .body = logon_page(with_.server.context().configuration().name, "The token is wrong."),
                .is_delayed = true};
    }
    std::string cookie = logons_->begin();
    log.write(event_severity::info, "administrator logged on to the web page", {{"peer", by.name}});
    return {.status = http_status::see_other, .location = "/", .cookie = session_cookie(cookie, false)};
}

web_service::reply web_service::log_off(const http_request& asked) noexcept {
    ENSURE(logons_.has_value(), "only a page with a token has logons");
    logons_->end(web_cookie_in(asked.headers.cookie));
    return {.status = http_status::see_other, .location = "/logon", .cookie = session_cookie("", true)};
}

}  // namespace sluice::cli

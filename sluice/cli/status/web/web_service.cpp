#include "sluice/cli/status/web/web_service.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/open_totals.hpp"
#include "sluice/cli/status/web/web_address.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/server/net/server_loop.hpp"

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
// So that one account leaves connections to others, on a Unix socket.
constexpr std::size_t connections_of_account_max = 16;
// A wrong token occupies its connection during this time. So the number of connections limits the
// guesses, and the right token is always accepted.
constexpr std::chrono::seconds wrong_token_delay{1};
constexpr std::chrono::seconds totals_fresh_for{1};
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
            return "The request was not sent by a page of this server, or the session has ended. Open the "
                   "page again.";
        case http_status::not_found:
            return "This page, session or open file does not exist.";
        case http_status::method_not_allowed:
            return "Use GET for pages, and POST for their forms.";
        case http_status::length_required:
            return "State the length of the form in the header Content-Length.";
        case http_status::unsupported_media_type:
            return "Send the form as application/x-www-form-urlencoded.";
        case http_status::misdirected_request:
            return "The Host header names another server. Use localhost, 127.0.0.1 or [::1].";
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

[[nodiscard]] std::string session_cookie(std::string_view name, std::string_view value, bool ends) {
    return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/{}", name, value, ends ? "; Max-Age=0" : "");
}

// Returns the page that a form was on, with its settings.
[[nodiscard]] std::string page_of_form(std::string_view path, std::string_view form) {
    std::string to(path);
    const auto add = [&](std::string_view name, std::uint64_t value) {
        if (value != 0) to += fmt::format("{}{}={}", to.size() == path.size() ? '?' : '&', name, value);
    };
    add("after", form_number(form, "after").value_or(0));
    add("refresh", refresh_of(form));
    return to;
}

// Returns whether the request names the scheme of tokens (RFC 9110, section 11.1: in any case), and
// the token.
[[nodiscard]] std::optional<std::string_view> bearer_token(std::string_view authorization) noexcept {
    constexpr std::string_view scheme = "Bearer ";
    if (not equal_ignoring_case(authorization.substr(0, scheme.size()), scheme)) return std::nullopt;
    return authorization.substr(scheme.size());
}

// Counts a connection of an account while it exists.
class counted_connection {
public:
    using counts = std::map<uid_t, std::size_t>;
    counted_connection(counts& all, uid_t account) : all_(all), mine_(all.try_emplace(account).first) {
        ++mine_->second;
    }
    counted_connection(const counted_connection&) = delete;
    counted_connection& operator=(const counted_connection&) = delete;
    ~counted_connection() {
        if (--mine_->second == 0) all_.erase(mine_);
    }
    [[nodiscard]] std::size_t of_account() const noexcept { return mine_->second; }

private:
    counts& all_;
    counts::iterator mine_;
};

}  // namespace

result<std::unique_ptr<web_service>> web_service::open(const dependencies& with,
                                                       const io::socket_address& at) noexcept {
    auto listener = io::listening_socket_handle::listen(at, {.replace_stale = true, .file_mode = 0600});
    if (not listener) return failure(listener.error());
    const auto bound = listener->local_address();
    if (not bound) return failure(bound.error());
    if (const auto attached = listener->set_multiplexer(&with.server.context().loop()); not attached)
        return failure(attached.error());
    return std::unique_ptr<web_service>(new web_service(with, *std::move(listener), *bound));
}

web_service::web_service(const dependencies& with, io::listening_socket_handle listener,
                         const io::socket_address& at)
    : with_(with),
      at_(at),
      connections_(
          with.server.context().loop(), std::move(listener),
          [this](io::socket_handle& socket) { return answer(socket); }, web_connections_max) {
    connections_.remove_at_end(std::string(at_.local_name()));
}

std::string web_service::url() const {
    return (at_.family() == io::address_family::local ? "" : "http://") + at_.text();
}

io::task<void> web_service::answer(io::socket_handle& socket) noexcept {
    std::optional<counted_connection> counted;
    if (const auto account = socket.peer_credentials()) counted.emplace(accounts_, account->user);
    if (counted and counted->of_account() > connections_of_account_max) co_return;
    const std::string read = co_await co_read_until(socket, http_request_bytes_max, has_http_form);
    if (read.empty()) co_return;  // the client only checked that the port is open
    const http_request asked = parse_http_form(read);
    io::task<reply> making = reply_to(asked, socket);
    reply made = co_await std::move(making);
    if (made.body.empty() and made.status != http_status::see_other)
        made.body = problem_page(made.status, explanation_of(made.status));
    if (made.is_delayed) {
        with_.server.context().log().write(event_severity::warning, wrong_token,
                                           {{"peer", name_of_peer(socket)}});
        const auto slept = co_await io::co_sleep(with_.server.context().loop(), wrong_token_delay);
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

io::task<web_service::reply> web_service::reply_to(const http_request& asked,
                                                   const io::socket_handle& socket) noexcept {
    const http_headers& sent = asked.headers;
    if (asked.problem != http_status::ok) co_return reply{.status = asked.problem};
    if (not is_own_host(sent.host, at_)) co_return reply{.status = http_status::misdirected_request};
    const bool is_action = asked.method == http_method::post;
    if (not is_action and
        not is_own_fetch({.site = sent.fetch_site, .mode = sent.fetch_mode, .dest = sent.fetch_dest}))
        co_return reply{.status = http_status::forbidden};
    visitor by = visitor_of(asked, socket);
    io::task<reply> making = is_action ? act(asked, by) : page(asked, by);
    reply made = co_await std::move(making);
    co_return made;
}

// A page takes up to a few milliseconds.
io::task<void> web_service::take_turn() noexcept {
    io::io_multiplexer& loop = with_.server.context().loop();
    while (last_page_turn_ == loop.turn()) {
        io::task<void> others = smb::server::later_turn(loop);
        co_await std::move(others);
    }
    last_page_turn_ = loop.turn();
}

std::shared_ptr<const server_snapshot> web_service::totals(bool has_open_numbers) {
    const clock_source::steady_time now = with_.server.context().clock().steady_now();
    const bool is_fresh = totals_ != nullptr and now - totals_->sampled_at < totals_fresh_for;
    if (is_fresh and (has_open_numbers_ or not has_open_numbers)) return totals_;
    totals_ = std::make_shared<const server_snapshot>(
        with_.server.snapshot({.has_totals = true, .has_open_numbers = has_open_numbers}));
    has_open_numbers_ = has_open_numbers;
    return totals_;
}

web_service::visitor web_service::visitor_of(const http_request& asked, const io::socket_handle& socket) {
    visitor by{.may_see = with_.logons == nullptr, .name = name_of_peer(socket)};
    if (with_.logons == nullptr) return by;
    if (const auto token = bearer_token(asked.headers.authorization)) {
        by.may_see = with_.logons->is_token(*token);
        by.has_wrong_token = not by.may_see;
        by.is_program = by.may_see;
        by.name = "web page, program at " + by.name;
        return by;
    }
    // A page that reloads itself is not a use: a forgotten browser does that.
    const std::string_view cookie = web_cookie_in(asked.headers.cookie, with_.logons->cookie_name());
    if (const auto found = with_.logons->find(cookie, refresh_of(asked.query) == 0)) {
        by.may_see = true;
        by.form_token = found->form_token;
        by.name = fmt::format("web page, session {} at {}", found->number, by.name);
    }
    return by;
}

io::task<web_service::reply> web_service::page(const http_request& asked, visitor by) noexcept {
    if (asked.path == "/style.css")
        co_return reply{.body = std::string(style_sheet()), .type = "text/css; charset=utf-8"};
    if (by.has_wrong_token) co_return reply{.status = http_status::unauthorized, .is_delayed = true};
    const std::string& name = with_.server.context().configuration().name;
    if (asked.path == "/logon" and with_.logons != nullptr) co_return reply{.body = logon_page(name, "")};
    const bool is_known = asked.path == "/" or asked.path == "/sessions" or asked.path == "/files" or
                          asked.path == "/rejections";
    if (not is_known) co_return reply{.status = http_status::not_found};
    if (not by.may_see) co_return reply{.status = http_status::see_other, .location = "/logon"};
    const page_view view{.server = name,
                         .form_token = by.form_token,
                         .refresh_s = refresh_of(asked.query),
                         .after = form_number(asked.query, "after").value_or(0)};
    io::task<void> waiting = take_turn();
    co_await std::move(waiting);
    if (asked.path == "/sessions") co_return sessions(view);
    if (asked.path == "/rejections") {
        const auto now = totals(false);
        co_return reply{.body = rejections_page(view, now->denied_connections, limit_rows(now->in_use))};
    }
    io::task<reply> making = asked.path == "/" ? overview(view) : files(view);
    reply made = co_await std::move(making);
    co_return made;
}

io::task<web_service::reply> web_service::overview(page_view view) noexcept {
    with_.host.refresh();
    for (unsigned waits = 0; with_.host.is_pending() and waits != host_waits_max; ++waits) {
        const auto slept = co_await io::co_sleep(with_.server.context().loop(), host_wait);
        if (not slept) co_return reply{};  // the server stops
    }
    io::task<void> waiting = take_turn();
    co_await std::move(waiting);
    const auto now = totals(false);
    const std::vector<finding> found = findings(*now);
    const std::vector<double> delays = with_.samples.loop_delays_ms();
    co_return reply{.body = overview_page(view, {.totals = *now,
                                                 .history = with_.samples.history(),
                                                 .loop_delays_ms = delays,
                                                 .findings = found})};
}

std::vector<finding> web_service::findings(const server_snapshot& totals) {
    std::vector<finding> all;
    add_findings_of(totals, all);
    with_.host.add_findings(all);
    if (with_.logons == nullptr and at_.family() != io::address_family::local)
        all.push_back({.severity = finding_severity::info,
                       .what = "every account of this host can read this page",
                       .hint = "to prevent that, use --web unix:PATH or --web-token-file"});
    return all;
}

web_service::reply web_service::sessions(const page_view& view) {
    const auto now = totals(false);
    page_range range{.after = view.after};
    const auto part = part_of(now->session_ids, page_sessions_max, range);
    const server_snapshot seen = with_.server.snapshot({.sessions = part});
    return {.body = sessions_page(view, range, seen.sessions, now->taken_at)};
}

io::task<web_service::reply> web_service::files(page_view view) noexcept {
    const auto now = totals(true);
    page_range range{.after = view.after};
    std::vector<open_status> opens;
    std::vector<std::uint64_t> ids;
    for (auto left = part_of(now->open_numbers, page_opens_max, range); not left.empty();) {
        const auto slice = left.first(std::min(left.size(), open_totals::slice_with_names));
        left = left.subspan(slice.size());
        server_snapshot seen = with_.server.snapshot({.has_names = true, .opens = slice});
        for (open_status& one : seen.opens) {
            ids.push_back(one.session);
            opens.push_back(std::move(one));
        }
        io::task<void> waiting = take_turn();
        co_await std::move(waiting);
    }
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    std::map<std::uint64_t, std::string> users;
    const server_snapshot seen = with_.server.snapshot({.sessions = ids});
    for (const auto& one : seen.sessions)
        users.emplace(one.id, one.is_anonymous ? "(anonymous)" : one.user);
    co_return reply{.body = files_page(view, range, opens, users)};
}

io::task<web_service::reply> web_service::act(const http_request& asked, const visitor& by) noexcept {
    const http_headers& sent = asked.headers;
    if (with_.logons == nullptr) co_return reply{.status = http_status::method_not_allowed};
    if (not is_form(sent.content_type)) co_return reply{.status = http_status::unsupported_media_type};
    if (not is_own_form({.host = sent.host, .origin = sent.origin, .fetch_site = sent.fetch_site}))
        co_return reply{.status = http_status::forbidden};
    if (asked.path == "/logon") co_return log_on(asked, by);
    if (not by.may_see)
        co_return reply{.status = http_status::unauthorized, .is_delayed = by.has_wrong_token};
    const std::string form_token = form_value(asked.body, "form").value_or("");
    const bool is_authentic =
        by.is_program or (not by.form_token.empty() and web_sessions::is_same(form_token, by.form_token));
    if (not is_authentic) co_return reply{.status = http_status::forbidden};
    if (asked.path == "/logoff") co_return log_off(asked);
    const std::optional<std::uint64_t> number = form_number(asked.body, "number");
    const bool is_of_session = asked.path == "/sessions/end";
    if (not is_of_session and asked.path != "/files/close") co_return reply{.status = http_status::not_found};
    if (not number) co_return reply{.status = http_status::bad_request};
    bool is_done = false;
    if (is_of_session) {
        io::task<bool> ending = end_session(*number, by);
        is_done = co_await std::move(ending);
    } else {
        is_done = with_.server.close_file(*number, by.name);
    }
    totals_.reset();
    // In a browser, the list shows that it had ended before.
    if (by.is_program and not is_done) co_return reply{.status = http_status::not_found};
    co_return reply{.status = http_status::see_other,
                    .location = page_of_form(is_of_session ? "/sessions" : "/files", asked.body)};
}

// The end of sessions has a bound in each turn of a loop, as for calls of RPC services.
io::task<bool> web_service::end_session(std::uint64_t number, const visitor& by) noexcept {
    io::io_multiplexer& loop = with_.server.context().loop();
    smb::server::turn_budget& budget = with_.server.context().loops().front()->pipe_ends;
    while (not budget.has_room(loop.turn(), smb::server::limits::pipe_ends_per_turn)) {
        io::task<void> others = smb::server::later_turn(loop);
        co_await std::move(others);
    }
    const std::optional<std::size_t> opens = with_.server.end_session(number, by.name);
    if (opens) budget.spend(loop.turn(), 1 + *opens);
    co_return opens.has_value();
}

web_service::reply web_service::log_on(const http_request& asked, const visitor& by) {
    ENSURE(with_.logons != nullptr, "only a page with a token has logons");
    const std::string token = form_value(asked.body, "token").value_or("");
    if (not with_.logons->is_token(token)) {
        return {.status = http_status::forbidden,
                .body = logon_page(with_.server.context().configuration().name, "The token is wrong."),
                .is_delayed = true};
    }
    const std::string cookie = with_.logons->begin();
    with_.server.context().log().write(event_severity::info, "administrator logged on to the web page",
                                       {{"peer", by.name}});
    return {.status = http_status::see_other,
            .location = "/",
            .cookie = session_cookie(with_.logons->cookie_name(), cookie, false)};
}

web_service::reply web_service::log_off(const http_request& asked) noexcept {
    ENSURE(with_.logons != nullptr, "only a page with a token has logons");
    const std::string& name = with_.logons->cookie_name();
    with_.logons->end(web_cookie_in(asked.headers.cookie, name));
    return {.status = http_status::see_other, .location = "/logon", .cookie = session_cookie(name, "", true)};
}

}  // namespace sluice::cli

#include "sluice/cli/status/metrics_service.hpp"

#include <fmt/core.h>

#include <span>

#include "sluice/cli/status/metrics_text.hpp"
#include "sluice/discovery/http/http_request.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::cli {

using http::co_read_until;
using http::co_write_all;
using http::has_http_headers;
using http::http_method;
using http::http_request;
using http::http_request_bytes_max;
using http::http_status;
using http::parse_http_request;
using http::reason_of;
using smb::server::server_snapshot;
using smb::server::smb_server;

namespace {

[[nodiscard]] std::string response(http_status status, std::string_view content_type, const std::string& body,
                                   bool has_body) {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n{}",
        static_cast<unsigned>(status), reason_of(status), content_type, body.size(),
        status == http_status::method_not_allowed ? "Allow: GET, HEAD\r\n" : "", has_body ? body : "");
}

}  // namespace

result<std::unique_ptr<metrics_service>> metrics_service::open(smb_server& server,
                                                               const io::socket_address& at) noexcept {
    auto listener = io::listening_socket_handle::listen(at);
    if (not listener) return failure(listener.error());
    if (const auto attached = listener->set_multiplexer(&server.context().loop()); not attached)
        return failure(attached.error());
    return std::unique_ptr<metrics_service>(new metrics_service(server, *std::move(listener)));
}

metrics_service::metrics_service(smb_server& server, io::listening_socket_handle listener)
    : server_(server),
      connections_(server.context().loop(), std::move(listener),
                   [this](io::socket_handle& socket) { return answer(socket); }) {}

io::task<void> metrics_service::answer(io::socket_handle& socket) noexcept {
    const std::string read = co_await co_read_until(socket, http_request_bytes_max, has_http_headers);
    if (read.empty()) co_return;  // the client only checked that the port is open
    http_request asked = parse_http_request(read);
    if (asked.method == http_method::post) asked.problem = http_status::method_not_allowed;
    const bool wants_body = asked.method != http_method::head;
    if (asked.problem != http_status::ok or asked.path != "/metrics") {
        const http_status status = asked.problem != http_status::ok ? asked.problem : http_status::not_found;
        const std::string body = fmt::format("{}; use GET /metrics\n", reason_of(status));
        (void)co_await co_write_all(socket, response(status, "text/plain; charset=utf-8", body, wants_body));
        co_return;
    }
    const std::string body = co_await metrics();
    (void)co_await co_write_all(socket, response(http_status::ok, metrics_content_type, body, wants_body));
}

io::task<std::string> metrics_service::metrics() noexcept {
    const server_snapshot totals = server_.snapshot({.has_totals = true});
    open_totals sum;
    for (std::span<const std::uint64_t> left(totals.open_numbers); not left.empty();) {
        const auto slice = left.first(std::min(left.size(), open_totals::slice));
        left = left.subspan(slice.size());
        const server_snapshot seen = server_.snapshot({.opens = slice});
        for (const auto& one : seen.opens)
            sum.add(one);
        co_await io::yield(server_.context().loop());
    }
    co_return metrics_text(totals, sum, process_use_now());
}

}  // namespace sluice::cli

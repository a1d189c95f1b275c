#include "sluice/discovery/wsd/wsd_protocol.hpp"

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/http/http_request.hpp"

namespace sluice::discovery {

namespace {

constexpr int wsd_hops = 1;  // the group of IPv4 would pass routers otherwise

[[nodiscard]] multicast_socket::settings group(std::string_view address) {
    const auto parsed = io::socket_address::ip(address, wsd_port);
    ENSURE(parsed.has_value(), "a constant of this program");
    return {.group = *parsed, .hops = wsd_hops};
}

// Returns whether the headers and the whole content have arrived, or can never be accepted.
[[nodiscard]] bool is_complete(std::string_view read) {
    if (not http::has_http_headers(read)) return false;
    const http::http_request request = http::parse_http_request(read);
    if (request.problem != http::http_status::ok) return true;
    return request.content_bytes > limits::wsd_message_bytes_max or
           read.size() - request.header_bytes >= request.content_bytes;
}

[[nodiscard]] std::string response(std::string_view status, const std::string& body) {
    return "HTTP/1.1 " + std::string(status) +
           "\r\nContent-Type: application/soap+xml; charset=utf-8\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace

result<std::unique_ptr<wsd_protocol>> wsd_protocol::open(wsd_facts facts, random_source& random) {
    auto sockets = socket_pair::open(group("239.255.255.250"), group("ff02::c"));
    if (not sockets) return failure(sockets.error());
    auto listener = io::listening_socket_handle::listen(io::socket_address::any_v6(wsd_http_port));
    if (not listener and listener.error() == std::errc::address_family_not_supported)
        listener = io::listening_socket_handle::listen(io::socket_address::any_v4(wsd_http_port));
    if (not listener) return failure(listener.error());
    return std::unique_ptr<wsd_protocol>(
        new wsd_protocol(std::move(facts), random, *std::move(sockets), *std::move(listener)));
}

void wsd_protocol::start(io::io_multiplexer& loop) {
    if (not listener_.set_multiplexer(&loop)) return;  // found, but without a description
    connections_.emplace(loop, std::move(listener_),
                         [this](io::socket_handle& socket) { return answer(socket); });
    connections_->accept_only(
        [this](const io::socket_address& peer) { return responder_.is_near(peer.ip_bytes()); });
    connections_->start();
}

void wsd_protocol::set_links(std::span<const link> links, const std::vector<ip_bytes>&, time now) {
    sockets_.join_only(links);
    responder_.set_links(links, now);
}

void wsd_protocol::receive(time now) {
    sockets_.receive([&](const arrived_datagram& arrived, bytes_view bytes) {
        responder_.receive({.where = arrived.where,
                            .from = arrived.from,
                            .bytes = bytes,
                            .is_to_group = arrived.is_to_group},
                           now);
    });
}

void wsd_protocol::advance(time now) {
    wsd_responder::packets out;
    responder_.advance(now, out);
    send(out);
}

void wsd_protocol::send(const wsd_responder::packets& out) {
    for (const outgoing_packet& each : out)
        sockets_.send(each.where, each.to ? &*each.to : nullptr, each.bytes);
}

void wsd_protocol::stop() {
    wsd_responder::packets out;
    responder_.stop(out);
    send(out);
    sockets_.join_only({});
    if (connections_) connections_->stop();
}

io::task<void> wsd_protocol::done() {
    if (not connections_) co_return;
    io::task<void> ending = connections_->done();
    co_await std::move(ending);
}

io::task<void> wsd_protocol::answer(io::socket_handle& socket) {
    const auto peer = socket.peer_address();
    if (not peer) co_return;
    const std::string read = co_await http::co_read_until(
        socket, http::http_request_bytes_max + limits::wsd_message_bytes_max, is_complete);
    const http::http_request asked = http::parse_http_request(read);
    if (asked.problem != http::http_status::ok or asked.method != http::http_method::post or
        asked.path != responder_.path() or read.size() - asked.header_bytes < asked.content_bytes) {
        (void)co_await http::co_write_all(socket, response("400 Bad Request", ""));
        co_return;
    }
    const std::string_view content = std::string_view(read).substr(asked.header_bytes, asked.content_bytes);
    const auto description = responder_.describe(content, peer->ip_bytes(), clock_.steady_now());
    const std::string text = description ? response("200 OK", *description) : response("400 Bad Request", "");
    (void)co_await http::co_write_all(socket, text);
}

}  // namespace sluice::discovery

#include "sluice/discovery/mdns/mdns_protocol.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

constexpr int mdns_hops = 255;  // RFC 6762 section 11

[[nodiscard]] multicast_socket::settings group(std::string_view address) {
    const auto parsed = io::socket_address::ip(address, mdns_port);
    ENSURE(parsed.has_value(), "a constant of this program");
    return {.group = *parsed, .hops = mdns_hops};
}

}  // namespace

result<std::unique_ptr<mdns_protocol>> mdns_protocol::open(const service_description& description,
                                                           random_source& random) {
    auto sockets = socket_pair::open(group("224.0.0.251"), group("ff02::fb"));
    if (not sockets) return failure(sockets.error());
    return std::unique_ptr<mdns_protocol>(new mdns_protocol(description, random, *std::move(sockets)));
}

void mdns_protocol::set_links(std::span<const link> links, const std::vector<ip_bytes>& own_addresses,
                              time now) {
    sockets_.join_only(links);
    responder_.set_links(links, own_addresses, now);
}

void mdns_protocol::receive(time now) {
    mdns_responder::packets out;
    sockets_.receive([&](const arrived_datagram& arrived, bytes_view bytes) {
        responder_.receive({.where = arrived.where,
                            .from = arrived.from,
                            .bytes = bytes,
                            .is_to_group = arrived.is_to_group},
                           now, out);
    });
    send(out);
}

void mdns_protocol::advance(time now) {
    mdns_responder::packets out;
    responder_.advance(now, out);
    send(out);
}

void mdns_protocol::stop() {
    mdns_responder::packets out;
    responder_.stop(out);
    send(out);
    sockets_.join_only({});
}

void mdns_protocol::send(const mdns_responder::packets& out) {
    for (const outgoing_packet& each : out)
        sockets_.send(each.where, each.to ? &*each.to : nullptr, each.bytes);
}

}  // namespace sluice::discovery

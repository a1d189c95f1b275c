// A message of multicast DNS. A decoded message can be encoded again, without a change. A responder
// that receives the message keeps its invariants, and sends a bounded number of packets.

#include <string>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/mdns/responder.hpp"

using namespace sluice;
using namespace sluice::discovery;

namespace {

void expect_round_trip(const dns_message& message) {
    const auto encoded = encode_dns_message(message, limits::dns_message_bytes_max);
    if (not encoded) return;  // names in data were compressed
    const auto again =
        decode_dns_message({reinterpret_cast<const std::byte*>(encoded->data()), encoded->size()});
    ENSURE(again and *again == message);
}

void receive(bytes_view bytes, bool is_established) {
    seeded_random random(1);
    mdns_responder responder({.name = "NAS"}, random);
    const auto own = io::socket_address::ip("192.168.1.5", 0);
    const auto from = io::socket_address::ip("192.168.1.9", mdns_port);
    ENSURE(own and from);
    const discovery::link where{.key = {.interface = 2},
                                .advertised = {{.address = own->ip_bytes(), .prefix_bits = 120}},
                                .all = {{.address = own->ip_bytes(), .prefix_bits = 120}}};
    mdns_responder::packets out;
    mdns_responder::time now{std::chrono::hours(1)};
    responder.set_links({&where, 1}, {}, now);
    const auto pass = [&](std::chrono::seconds time) {
        for (now += time; responder.next_due() <= now;)
            responder.advance(now, out);
    };
    if (is_established) pass(std::chrono::seconds(9)), pass(std::chrono::seconds(9));
    out.clear();
    responder.receive({.where = where.key, .from = *from, .bytes = bytes}, now, out);
    pass(std::chrono::seconds(1));
    ENSURE(out.size() <= 3, "one packet causes few");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes_view bytes(reinterpret_cast<const std::byte*>(data), size);
    if (const auto message = decode_dns_message(bytes)) expect_round_trip(*message);
    receive(bytes, false);
    receive(bytes, true);
    return 0;
}

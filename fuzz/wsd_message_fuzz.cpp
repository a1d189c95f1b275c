// A message of WS-Discovery. An accepted message has an ID, and its texts are bounded. A responder
// sends at most one packet for it.

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/wsd/wsd_responder.hpp"

using namespace sluice;
using namespace sluice::discovery;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto request = parse_wsd_request(text))
        ENSURE(not request->message_id.empty() and
               request->message_id.size() <= limits::xml_text_bytes_max and
               request->endpoint.size() <= limits::xml_text_bytes_max);
    seeded_random random(1);
    wsd_responder responder({.endpoint = "urn:uuid:e", .computer = "NAS"}, random);
    const auto from = io::socket_address::ip("192.168.1.9", 3702);
    ENSURE(from.has_value());
    const discovery::link where{.key = {.interface = 2},
                                .advertised = {{.address = from->ip_bytes(), .prefix_bits = 120}},
                                .all = {{.address = from->ip_bytes(), .prefix_bits = 120}}};
    wsd_responder::time now{std::chrono::hours(1)};
    responder.set_links({&where, 1}, now);
    wsd_responder::packets out;
    responder.advance(now += std::chrono::seconds(1), out);
    out.clear();
    responder.receive(
        {.where = where.key, .from = *from, .bytes = {reinterpret_cast<const std::byte*>(data), size}}, now);
    responder.advance(now += std::chrono::seconds(1), out);
    ENSURE(out.size() <= 1);
    if (const auto description = responder.describe(text, from->ip_bytes(), now))
        ENSURE(description->size() <= 16'384, "texts of the request do not multiply");
    return 0;
}

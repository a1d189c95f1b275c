#include <gtest/gtest.h>

#include "sluice/discovery/wsd/wsd_responder.hpp"

namespace sluice::discovery {
namespace {

using namespace std::chrono_literals;

const std::string probe_text =
    R"(<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="http://www.w3.org/2003/05/soap-envelope" )"
    R"(xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing" )"
    R"(xmlns:wsd="http://schemas.xmlsoap.org/ws/2005/04/discovery" )"
    R"(xmlns:wsdp="http://schemas.xmlsoap.org/ws/2006/02/devprof"><soap:Header>)"
    R"(<wsa:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</wsa:To>)"
    R"(<wsa:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</wsa:Action>)"
    R"(<wsa:MessageID>urn:uuid:1</wsa:MessageID></soap:Header><soap:Body><wsd:Probe>)"
    R"(<wsd:Types>wsdp:Device</wsd:Types></wsd:Probe></soap:Body></soap:Envelope>)";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}
std::string get_text() {
    return replaced(probe_text, "http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe",
                    "http://schemas.xmlsoap.org/ws/2004/09/transfer/Get");
}

TEST(wsd_request, a_probe_is_recognised) {
    const auto request = parse_wsd_request(probe_text);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->action, wsd_action::probe);
    EXPECT_EQ(request->message_id, "urn:uuid:1");
    EXPECT_TRUE(request->matches_types);
    EXPECT_FALSE(request->has_scopes);
}

TEST(wsd_request, types_are_compared_by_namespace_not_by_prefix) {
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "wsdp:Device<", "wsd:Device<"))->matches_types);
    EXPECT_FALSE(
        parse_wsd_request(replaced(probe_text, "wsdp:Device<", "wsdp:Device wsdp:Printer<"))->matches_types);
    std::string renamed = replaced(probe_text, "xmlns:wsdp=", "xmlns:x=");
    EXPECT_TRUE(parse_wsd_request(replaced(renamed, "wsdp:Device<", "x:Device<"))->matches_types);
    EXPECT_TRUE(parse_wsd_request(replaced(probe_text, "wsdp:Device<", "<"))->matches_types);
}

TEST(wsd_request, document_types_deep_nesting_and_long_texts_are_rejected) {
    EXPECT_FALSE(parse_wsd_request(
        replaced(probe_text, "<soap:Envelope", "<!DOCTYPE a [<!ENTITY b \"c\">]><soap:Envelope")));
    std::string deep;
    for (unsigned i = 0; i != limits::xml_depth_max; ++i)
        deep += "<a>";
    for (unsigned i = 0; i != limits::xml_depth_max; ++i)
        deep += "</a>";
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "<wsd:Types>", deep + "<wsd:Types>")));
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "urn:uuid:1", std::string(1025, 'x'))));
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "urn:uuid:1", "")));
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "</soap:Envelope>", "")));
    EXPECT_FALSE(parse_wsd_request(probe_text + std::string(40'000, ' ')));
    EXPECT_FALSE(parse_wsd_request(""));
}

// Expat reports the end of an empty element although its begin was refused.
TEST(wsd_request, elements_with_long_names_are_rejected) {
    const std::string name(limits::xml_path_bytes_max, 'a');
    EXPECT_FALSE(parse_wsd_request("<" + name + "/>"));
    EXPECT_FALSE(parse_wsd_request("<" + std::string(1100, 'a') + "/>"));
    EXPECT_FALSE(parse_wsd_request("<a><" + name + "></" + name + "></a>"));
    EXPECT_FALSE(parse_wsd_request(replaced(probe_text, "<wsd:Types>", "<" + name + "/><wsd:Types>")));
    EXPECT_FALSE(parse_wsd_request("<" + name + " xmlns='a' xmlns:b='c'/>"));
    EXPECT_FALSE(parse_wsd_request("<a xmlns:b='" + std::string(1100, 'c') + "'/>"));
}

TEST(wsd_request, many_elements_are_rejected) {
    const auto with = [](std::size_t count) {
        std::string elements;
        for (std::size_t i = 0; i != count; ++i)
            elements += "<a/>";
        return replaced(probe_text, "<wsd:Types>", elements + "<wsd:Types>");
    };
    EXPECT_TRUE(parse_wsd_request(with(100)));
    EXPECT_FALSE(parse_wsd_request(with(limits::xml_elements_max)));
}

TEST(wsd_request, a_text_in_another_place_has_no_meaning) {
    const auto request = parse_wsd_request(
        replaced(probe_text, "<wsd:Types>", "<wsa:MessageID>urn:uuid:2</wsa:MessageID><wsd:Types>"));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->message_id, "urn:uuid:1");
}

class wsd_host : public testing::Test {
protected:
    static link the_link() {
        const auto own = io::socket_address::ip("192.168.1.5", 0).value().ip_bytes();
        return {.key = {.interface = 2},
                .advertised = {{.address = own, .prefix_bits = 120}},
                .all = {{.address = own, .prefix_bits = 120}}};
    }
    void receive(std::string_view text, std::string_view from = "192.168.1.9", bool is_to_group = true) {
        responder.receive({.where = {.interface = 2},
                           .from = io::socket_address::ip(from, 40'000).value(),
                           .bytes = {reinterpret_cast<const std::byte*>(text.data()), text.size()},
                           .is_to_group = is_to_group},
                          now);
    }
    void pass(clock_source::duration time) {
        now += time;
        responder.advance(now, out);
    }
    void begin() {
        const link where = the_link();
        responder.set_links({&where, 1}, now);
        pass(1s);
    }

    wsd_responder::time now = simulated_clock().steady_now();
    seeded_random random{2};
    wsd_responder responder{{.endpoint = "urn:uuid:e", .computer = "NAS"}, random};
    wsd_responder::packets out;
};

TEST_F(wsd_host, a_new_link_is_greeted_twice_and_left_with_bye) {
    begin();
    ASSERT_EQ(out.size(), 2U);
    EXPECT_EQ(out[0].bytes, out[1].bytes);
    EXPECT_FALSE(out[0].to.has_value());
    EXPECT_TRUE(out[0].bytes.contains("<wsd:XAddrs>http://192.168.1.5:5357/e</wsd:XAddrs>"));
    out.clear();
    responder.stop(out);
    ASSERT_EQ(out.size(), 2U);
    EXPECT_TRUE(out[0].bytes.contains("<wsd:Bye>"));
}

TEST_F(wsd_host, a_probe_is_answered_once) {
    begin();
    out.clear();
    receive(probe_text);
    receive(probe_text);
    pass(500ms);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(out[0].to.has_value());
    EXPECT_TRUE(out[0].bytes.contains("<wsa:RelatesTo>urn:uuid:1</wsa:RelatesTo>"));
    EXPECT_TRUE(out[0].bytes.contains("<wsd:ProbeMatch>"));
}

TEST_F(wsd_host, probes_for_others_or_from_outside_get_no_answer) {
    begin();
    out.clear();
    receive(replaced(probe_text, "wsdp:Device<", "wsdp:Printer<"));
    receive(replaced(probe_text, "<wsd:Types>", "<wsd:Scopes>a</wsd:Scopes><wsd:Types>"));
    receive(get_text());
    receive(probe_text, "192.168.2.9");
    pass(1s);
    EXPECT_TRUE(out.empty());
}

TEST_F(wsd_host, messages_that_were_not_sent_to_the_group_get_no_answer) {
    begin();
    out.clear();
    receive(probe_text, "192.168.1.9", false);
    pass(1s);
    EXPECT_TRUE(out.empty());
}

TEST_F(wsd_host, a_resolve_of_the_own_endpoint_is_answered_at_once) {
    begin();
    out.clear();
    std::string text = replaced(probe_text, "discovery/Probe<", "discovery/Resolve<");
    text = replaced(text, "<wsd:Probe><wsd:Types>wsdp:Device</wsd:Types></wsd:Probe>",
                    "<wsd:Resolve><wsa:EndpointReference><wsa:Address>urn:uuid:e</wsa:Address>"
                    "</wsa:EndpointReference></wsd:Resolve>");
    receive(replaced(text, "urn:uuid:e", "urn:uuid:other"));
    pass(0s);
    EXPECT_TRUE(out.empty());
    receive(text);
    pass(0s);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(out[0].bytes.contains("<wsd:ResolveMatch>"));
}

TEST_F(wsd_host, replies_are_limited) {
    begin();
    out.clear();
    for (int i = 0; i != 500; ++i)
        receive(replaced(probe_text, "urn:uuid:1", "urn:uuid:" + std::to_string(i)));
    pass(1s);
    EXPECT_EQ(out.size(), limits::unicast_replies_burst);
}

TEST_F(wsd_host, a_message_that_got_no_reply_for_its_rate_gets_one_when_it_is_repeated) {
    begin();
    out.clear();
    for (unsigned i = 0; i != limits::unicast_replies_burst; ++i)
        receive(replaced(probe_text, "urn:uuid:1", "urn:uuid:" + std::to_string(i)));
    const std::string late = replaced(probe_text, "urn:uuid:1", "urn:uuid:late");
    receive(late);
    pass(1s);
    EXPECT_EQ(out.size(), limits::unicast_replies_burst);
    out.clear();
    receive(late);
    pass(1s);
    EXPECT_EQ(out.size(), 1U);
}

TEST_F(wsd_host, messages_are_parsed_at_a_limited_rate) {
    begin();
    out.clear();
    for (unsigned i = 0; i != limits::wsd_parses_burst; ++i)
        receive("<a/>");
    receive(probe_text);
    pass(1s);
    EXPECT_TRUE(out.empty());
    receive(probe_text);
    pass(1s);
    EXPECT_EQ(out.size(), 1U);
}

TEST_F(wsd_host, descriptions_are_limited) {
    begin();
    const auto near = io::socket_address::ip("192.168.1.9", 0).value().ip_bytes();
    for (unsigned i = 0; i != limits::wsd_descriptions_burst; ++i)
        EXPECT_TRUE(responder.describe(get_text(), near, now));
    EXPECT_FALSE(responder.describe(get_text(), near, now));
    EXPECT_TRUE(responder.describe(get_text(), near, now + 1s));
}

TEST_F(wsd_host, only_hosts_on_a_link_are_near) {
    const auto near = io::socket_address::ip("192.168.1.9", 0).value().ip_bytes();
    EXPECT_FALSE(responder.is_near(near)) << "without links";
    begin();
    EXPECT_TRUE(responder.is_near(near));
    EXPECT_FALSE(responder.is_near(io::socket_address::ip("192.168.2.9", 0).value().ip_bytes()));
}

TEST_F(wsd_host, the_description_names_the_computer_and_escapes_texts_of_the_request) {
    begin();
    const auto near = io::socket_address::ip("192.168.1.9", 0).value().ip_bytes();
    const auto far = io::socket_address::ip("192.168.2.9", 0).value().ip_bytes();
    const auto text = responder.describe(replaced(get_text(), "urn:uuid:1", "&lt;a&gt;"), near, now);
    ASSERT_TRUE(text);
    EXPECT_TRUE(text->contains("<pub:Computer>NAS/Workgroup:WORKGROUP</pub:Computer>"));
    EXPECT_TRUE(text->contains("<wsa:RelatesTo>&lt;a&gt;</wsa:RelatesTo>"));
    EXPECT_FALSE(responder.describe(get_text(), far, now));
    EXPECT_FALSE(responder.describe(probe_text, near, now));
}

}  // namespace
}  // namespace sluice::discovery

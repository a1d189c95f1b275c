#include "sluice/discovery/mdns/responder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::discovery {
namespace {

using namespace std::chrono_literals;

dns_name name(std::string_view dotted) {
    return dns_name::parse(dotted).value();
}
ip_bytes bytes(std::string_view text) {
    return io::socket_address::ip(text, 0).value().ip_bytes();
}
constexpr link_key first_link{.interface = 2};
const io::socket_address neighbour = io::socket_address::ip("192.168.1.9", mdns_port).value();
const io::socket_address resolver = io::socket_address::ip("192.168.1.9", 40'000).value();

link link_with(std::string_view address, link_key key = first_link) {
    const link_address own{.address = bytes(address), .prefix_bits = 96 + 24};
    return {.key = key, .advertised = {own}, .all = {own}};
}

// A responder on one link, with a simulated clock.
class host : public testing::Test {
protected:
    host() { responder.set_links({{link_with("192.168.1.5")}}, {bytes("192.168.1.5")}, now); }

    void receive(const dns_message& message, const io::socket_address& from = neighbour,
                 link_key where = first_link, bool is_to_group = true) {
        const auto encoded = encode_dns_message(message, limits::dns_message_bytes_max);
        ASSERT_TRUE(encoded);
        const bytes_view view(reinterpret_cast<const std::byte*>(encoded->data()), encoded->size());
        responder.receive({.where = where, .from = from, .bytes = view, .is_to_group = is_to_group}, now,
                          out);
    }
    // Runs all that is due within a time.
    void pass(clock_source::duration time) {
        const auto end = now + time;
        while (responder.next_due() <= end) {
            now = std::max(now, responder.next_due());
            responder.advance(now, out);
        }
        now = end;
    }
    std::vector<dns_message> sent() {
        std::vector<dns_message> messages;
        for (const outgoing_packet& each : out)
            messages.push_back(
                decode_dns_message({reinterpret_cast<const std::byte*>(each.bytes.data()), each.bytes.size()})
                    .value());
        out.clear();
        return messages;
    }
    void establish() {
        pass(5s);
        out.clear();
        ASSERT_TRUE(responder.is_established(first_link));
    }
    static dns_message question(std::string_view dotted, dns_type type, bool wants_unicast = false) {
        dns_message message;
        message.questions.push_back({.name = name(dotted), .type = type, .wants_unicast = wants_unicast});
        return message;
    }
    static dns_message response(std::string_view dotted, dns_type type, std::string data,
                                std::uint32_t ttl_seconds = 120) {
        dns_message message{.flags = dns_message::is_response};
        message.answers.push_back(
            {.name = name(dotted), .type = type, .ttl_seconds = ttl_seconds, .data = std::move(data)});
        return message;
    }
    static dns_message probe(std::string_view dotted, std::string data) {
        dns_message message = question(dotted, dns_type::any);
        message.authorities.push_back({.name = name(dotted), .type = dns_type::a, .data = std::move(data)});
        return message;
    }

    mdns_responder::time now = simulated_clock().steady_now();
    seeded_random random{1};
    mdns_responder responder{{.name = "NAS"}, random};
    mdns_responder::packets out;
};

const dns_record* find(const std::vector<dns_record>& records, std::string_view dotted, dns_type type) {
    const auto found = std::ranges::find_if(
        records, [&](const dns_record& each) { return each.type == type and each.name == name(dotted); });
    return found == records.end() ? nullptr : &*found;
}

TEST_F(host, a_name_is_probed_three_times_and_announced_twice) {
    pass(10s);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 5U);
    for (int i = 0; i != 3; ++i) {
        EXPECT_EQ(messages[i].flags, 0);
        EXPECT_FALSE(messages[i].authorities.empty());
    }
    for (int i = 3; i != 5; ++i) {
        EXPECT_EQ(messages[i].flags, dns_message::is_response | dns_message::is_authoritative);
        const dns_record* const address = find(messages[i].answers, "NAS.local", dns_type::a);
        ASSERT_NE(address, nullptr);
        EXPECT_TRUE(address->flushes_cache);
        EXPECT_EQ(address->ttl_seconds, 120U);
        const dns_record* const type = find(messages[i].answers, "_smb._tcp.local", dns_type::ptr);
        ASSERT_NE(type, nullptr);
        EXPECT_FALSE(type->flushes_cache);
        EXPECT_EQ(type->data, name("NAS._smb._tcp.local").wire());
        EXPECT_NE(find(messages[i].answers, "NAS._device-info._tcp.local", dns_type::txt), nullptr);
    }
}

TEST_F(host, questions_are_not_answered_before_the_name_is_claimed) {
    receive(question("NAS.local", dns_type::a));
    pass(1ms);
    for (const dns_message& each : sent())
        EXPECT_EQ(each.flags & dns_message::is_response, 0);
}

TEST_F(host, an_answer_to_a_probe_lets_the_host_take_another_name) {
    pass(300ms);
    receive(response("nas.local", dns_type::a, "\xc0\xa8\1\x9"));
    EXPECT_EQ(responder.host_label(), "NAS-2");
    EXPECT_EQ(responder.instance_label(), "NAS");
    receive(response("NAS._smb._tcp.local", dns_type::srv, std::string(6, '\0') + name("x.local").wire()));
    EXPECT_EQ(responder.instance_label(), "NAS (2)");
    establish();
}

TEST_F(host, the_own_address_and_a_goodbye_are_not_conflicts) {
    pass(300ms);
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\5"));
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9", 0));
    EXPECT_EQ(responder.host_label(), "NAS");
}

TEST_F(host, the_probe_with_later_data_wins) {
    pass(300ms);
    receive(probe("NAS.local", "\xc0\xa8\1\1"));  // less than ours
    const auto due = responder.next_due();
    EXPECT_LE(due - now, 250ms);
    receive(probe("NAS.local", "\xc0\xa8\1\x9"));
    EXPECT_EQ(responder.next_due() - now, 1s);
    sent();
    pass(3s);  // the other host has not answered the probes, so the name is free
    EXPECT_TRUE(responder.is_established(first_link));
    EXPECT_EQ(responder.host_label(), "NAS");
}

TEST_F(host, own_packets_that_return_change_nothing) {
    pass(300ms);
    const auto probes = out;
    ASSERT_FALSE(probes.empty());
    const auto due = responder.next_due();
    for (const outgoing_packet& each : probes)
        responder.receive(
            {.where = first_link,
             .from = io::socket_address::ip("192.168.1.5", mdns_port).value(),
             .bytes = {reinterpret_cast<const std::byte*>(each.bytes.data()), each.bytes.size()}},
            now, out);
    EXPECT_EQ(responder.next_due(), due);
}

TEST_F(host, a_claimed_name_is_defended_at_once) {
    establish();
    receive(probe("NAS.local", "\xc0\xa8\1\x9"));
    EXPECT_EQ(responder.next_due(), now);
    pass(0s);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_NE(find(messages[0].answers, "NAS.local", dns_type::a), nullptr);
}

TEST_F(host, a_conflict_after_claiming_leads_to_probes_and_then_to_another_name) {
    establish();
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9"));
    EXPECT_FALSE(responder.is_established(first_link));
    EXPECT_EQ(responder.host_label(), "NAS");
    pass(300ms);
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9"));
    EXPECT_EQ(responder.host_label(), "NAS-2");
}

TEST_F(host, an_announced_name_that_another_host_takes_is_withdrawn) {
    establish();
    const dns_message conflict =
        response("NAS._smb._tcp.local", dns_type::srv, std::string(6, '\0') + name("other.local").wire());
    receive(conflict);
    receive(conflict);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    ASSERT_EQ(messages[0].answers.size(), 1U) << "others may have the rest";
    EXPECT_EQ(messages[0].answers[0].name, name("_smb._tcp.local"));
    EXPECT_EQ(messages[0].answers[0].data, name("NAS._smb._tcp.local").wire());
    EXPECT_EQ(messages[0].answers[0].ttl_seconds, 0U);
}

TEST_F(host, a_stop_during_new_probes_withdraws_the_announced_shared_records) {
    establish();
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9"));
    ASSERT_FALSE(responder.is_established(first_link));
    responder.stop(out);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_NE(find(messages[0].answers, "_smb._tcp.local", dns_type::ptr), nullptr);
    EXPECT_EQ(find(messages[0].answers, "NAS.local", dns_type::a), nullptr);
    for (const dns_record& each : messages[0].answers)
        EXPECT_EQ(each.ttl_seconds, 0U);
}

TEST_F(host, a_response_that_was_not_sent_to_the_group_is_ignored) {
    establish();
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9"), neighbour, first_link, false);
    EXPECT_TRUE(responder.is_established(first_link));
    receive(question("NAS.local", dns_type::a), resolver, first_link, false);
    EXPECT_EQ(out.size(), 1U) << "a question may be";
}

TEST_F(host, many_conflicts_slow_down_the_probes) {
    for (int i = 0; i != 20; ++i) {
        pass(1ms);
        receive(response(responder.host_label() + ".local", dns_type::a, "\xc0\xa8\1\x9"));
    }
    EXPECT_EQ(responder.next_due() - now, 5s);
}

TEST_F(host, a_shared_record_is_answered_after_a_delay_with_what_the_client_needs_next) {
    establish();
    receive(question("_smb._tcp.local", dns_type::ptr));
    EXPECT_GE(responder.next_due() - now, 20ms);
    EXPECT_LE(responder.next_due() - now, 120ms);
    pass(120ms);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    ASSERT_EQ(messages[0].answers.size(), 1U);
    for (const dns_type type : {dns_type::srv, dns_type::txt})
        EXPECT_NE(find(messages[0].additionals, "NAS._smb._tcp.local", type), nullptr);
    EXPECT_NE(find(messages[0].additionals, "NAS.local", dns_type::a), nullptr);
}

TEST_F(host, a_known_answer_is_not_repeated_unless_it_is_old) {
    establish();
    dns_message message = question("_smb._tcp.local", dns_type::ptr);
    message.answers.push_back({.name = name("_smb._tcp.local"),
                               .type = dns_type::ptr,
                               .ttl_seconds = 2250,
                               .data = name("nas._smb._tcp.local").wire()});
    message.answers.front().data = name("NAS._smb._tcp.local").wire();
    receive(message);
    pass(1s);
    EXPECT_TRUE(sent().empty());
    message.answers.front().ttl_seconds = 2249;
    receive(message);
    pass(1s);
    EXPECT_EQ(sent().size(), 1U);
}

TEST_F(host, known_answers_may_follow_in_further_packets) {
    establish();
    dns_message message = question("_smb._tcp.local", dns_type::ptr);
    message.flags = dns_message::is_truncated;
    receive(message);
    EXPECT_GE(responder.next_due() - now, 400ms);
    dns_message rest;
    rest.answers.push_back({.name = name("_smb._tcp.local"),
                            .type = dns_type::ptr,
                            .ttl_seconds = 4500,
                            .data = name("NAS._smb._tcp.local").wire()});
    receive(rest);
    pass(1s);
    EXPECT_TRUE(sent().empty());
}

TEST_F(host, a_record_is_multicast_at_most_once_per_second) {
    establish();
    for (int i = 0; i != 100; ++i) {
        receive(question("NAS.local", dns_type::a));
        pass(10ms);
    }
    EXPECT_LE(sent().size(), 2U);
}

TEST_F(host, a_question_for_a_unicast_reply_gets_one_if_all_have_seen_the_record_recently) {
    establish();
    receive(question("NAS.local", dns_type::a, true));
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].to, neighbour);
    out.clear();
    pass(60s);  // more than a quarter of the time to live
    receive(question("NAS.local", dns_type::a, true));
    pass(0s);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_FALSE(out[0].to.has_value());
}

TEST_F(host, a_plain_resolver_gets_a_reply_like_from_a_dns_server) {
    establish();
    dns_message message = question("NAS.local", dns_type::a);
    message.id = 77;
    receive(message, resolver);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].to, resolver);
    const auto messages = sent();
    EXPECT_EQ(messages[0].id, 77);
    EXPECT_EQ(messages[0].questions, message.questions);
    EXPECT_FALSE(messages[0].answers.at(0).flushes_cache);
    EXPECT_EQ(messages[0].answers.at(0).ttl_seconds, 10U);
}

TEST_F(host, replies_to_single_hosts_are_limited) {
    establish();
    for (int i = 0; i != 1000; ++i)
        receive(question("NAS.local", dns_type::a), resolver);
    EXPECT_EQ(out.size(), limits::unicast_replies_burst);
    out.clear();
    pass(1s);
    for (int i = 0; i != 1000; ++i)
        receive(question("NAS.local", dns_type::a), resolver);
    EXPECT_EQ(out.size(), limits::unicast_replies_per_second);
}

TEST_F(host, packets_from_outside_the_link_are_ignored) {
    establish();
    receive(question("NAS.local", dns_type::a), io::socket_address::ip("192.168.2.9", mdns_port).value());
    receive(question("NAS.local", dns_type::a), neighbour, {.interface = 3});
    receive(response("NAS.local", dns_type::a, "\xc0\xa8\1\x9"), resolver);  // another source port
    pass(1s);
    EXPECT_TRUE(sent().empty());
    EXPECT_TRUE(responder.is_established(first_link));
}

TEST_F(host, a_type_that_the_name_does_not_have_is_denied) {
    establish();
    receive(question("NAS.local", dns_type::aaaa));
    pass(1s);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    const dns_record* const none = find(messages[0].answers, "NAS.local", dns_type::nsec);
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(none->data, name("NAS.local").wire() + std::string("\0\1\x40", 3));
}

TEST_F(host, a_record_that_another_host_withdraws_is_announced_again) {
    establish();
    receive(response("_smb._tcp.local", dns_type::ptr, name("NAS._smb._tcp.local").wire(), 0));
    pass(2s);
    EXPECT_EQ(sent().size(), 1U);
}

TEST_F(host, the_types_of_services_can_be_listed) {
    establish();
    receive(question("_services._dns-sd._udp.local", dns_type::ptr));
    pass(1s);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_EQ(messages[0].answers.at(0).data, name("_smb._tcp.local").wire());
}

TEST_F(host, a_stop_withdraws_all_records) {
    establish();
    responder.stop(out);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_NE(find(messages[0].answers, "_smb._tcp.local", dns_type::ptr), nullptr);
    for (const dns_record& each : messages[0].answers)
        EXPECT_EQ(each.ttl_seconds, 0U);
    EXPECT_EQ(responder.next_due(), mdns_responder::time::max());
}

TEST_F(host, another_address_is_announced_without_probes) {
    establish();
    responder.set_links({{link_with("192.168.1.6")}}, {bytes("192.168.1.6")}, now);
    pass(5s);
    const auto messages = sent();
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(find(messages[0].answers, "NAS.local", dns_type::a)->data, "\xc0\xa8\1\6");
}

TEST_F(host, a_link_that_returns_is_probed_again) {
    establish();
    responder.set_links({}, {}, now);
    EXPECT_EQ(responder.next_due(), mdns_responder::time::max());
    responder.set_links({{link_with("192.168.1.5")}}, {}, now);
    EXPECT_FALSE(responder.is_established(first_link));
}

TEST_F(host, many_questions_in_one_packet_get_one_answer) {
    establish();
    dns_message message;
    for (std::size_t i = 0; i != limits::dns_questions_max; ++i)
        message.questions.push_back({.name = name("_smb._tcp.local"), .type = dns_type::ptr});
    receive(message);
    pass(1s);
    EXPECT_EQ(sent().size(), 1U);
}

TEST(time_machine, shares_are_listed_in_a_service_of_their_own) {
    const auto services =
        services_of({.name = "NAS", .time_machine_shares = {"Backup", "with,comma", "Other"}});
    ASSERT_EQ(services.size(), 3U);
    EXPECT_EQ(services[2].type, "_adisk._tcp");
    EXPECT_EQ(services[2].texts.at(1), "dk0=adVN=Backup,adVF=0x82");
    EXPECT_EQ(services[2].texts.at(2), "dk1=adVN=Other,adVF=0x82");
    EXPECT_EQ(services_of({.name = "NAS"}).size(), 2U);
}

}  // namespace
}  // namespace sluice::discovery

#include "sluice/discovery/network/interface_list.hpp"

#include <gtest/gtest.h>

namespace sluice::discovery {
namespace {

link_address address(std::string_view text, unsigned prefix_bits) {
    const auto parsed = io::socket_address::ip(text, 0);
    const ip_bytes bytes = parsed.value().ip_bytes();
    return {.address = bytes, .prefix_bits = is_v4(bytes) ? 96 + prefix_bits : prefix_bits};
}
ip_bytes bytes(std::string_view text) {
    return address(text, 0).address;
}
interface_facts interface(std::vector<link_address> addresses) {
    return {.number = 2, .name = "eth0", .is_usable = true, .addresses = std::move(addresses)};
}
const std::vector<io::socket_address> everywhere{io::socket_address::any_v6(445)};

chosen_links choose(const interface_facts& one,
                    const std::vector<io::socket_address>& listening = everywhere) {
    return choose_links({&one, 1}, listening);
}

TEST(discovery_links, addresses_of_private_networks_are_recognised) {
    for (const char* const each : {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
                                   "100.127.255.255", "169.254.3.4", "fe80::1", "fd00::1"})
        EXPECT_TRUE(is_private(bytes(each))) << each;
    for (const char* const each : {"9.9.9.9", "172.15.0.1", "172.32.0.1", "192.169.0.1", "100.63.0.1",
                                   "100.128.0.1", "2001:db8::1", "127.0.0.1", "::1"})
        EXPECT_FALSE(is_private(bytes(each))) << each;
}

TEST(discovery_links, a_private_interface_is_a_link_for_each_family) {
    const auto chosen = choose(interface({address("192.168.1.5", 24), address("fe80::5", 64)}));
    ASSERT_EQ(chosen.links.size(), 2U);
    EXPECT_EQ(chosen.links[0].advertised.size(), 2U);
    EXPECT_EQ(chosen.names, std::vector<std::string>{"eth0"});
}

TEST(discovery_links, an_interface_with_a_public_ipv4_address_is_not_used) {
    EXPECT_TRUE(choose(interface({address("9.9.9.9", 24), address("fe80::5", 64)})).links.empty());
    EXPECT_TRUE(choose(interface({address("9.9.9.9", 24), address("10.0.0.1", 8)})).links.empty());
}

TEST(discovery_links, a_global_ipv6_address_is_not_advertised_and_does_not_suffice) {
    const auto home = choose(interface({address("192.168.1.5", 24), address("2001:db8::5", 64)}));
    ASSERT_EQ(home.links.size(), 2U);
    EXPECT_EQ(home.links[0].advertised.size(), 1U);
    EXPECT_TRUE(choose(interface({address("2001:db8::5", 64), address("fe80::5", 64)})).links.empty());
    EXPECT_FALSE(choose(interface({address("fe80::5", 64)})).links.empty());
}

TEST(discovery_links, only_addresses_that_the_server_listens_on_are_advertised) {
    const auto one = interface({address("192.168.1.5", 24), address("192.168.2.5", 24)});
    const auto chosen = choose(one, {io::socket_address::ip("192.168.2.5", 445).value()});
    ASSERT_EQ(chosen.links.size(), 1U);
    EXPECT_EQ(chosen.links[0].advertised, std::vector<link_address>{address("192.168.2.5", 24)});
    EXPECT_TRUE(choose(one, {io::socket_address::loopback_v4(445)}).links.empty());
}

TEST(discovery_links, the_advertised_port_is_one_that_other_hosts_can_use) {
    const auto local = io::socket_address::loopback_v4(445);
    const auto lan = io::socket_address::ip("192.168.2.5", 1445).value();
    const auto usual = io::socket_address::ip("192.168.2.5", 445).value();
    using listeners = std::vector<io::socket_address>;
    EXPECT_EQ(advertised_port(listeners{local, lan}), 1445);
    EXPECT_EQ(advertised_port(listeners{lan, usual}), 445);
    EXPECT_EQ(advertised_port(listeners{local}), 0);
}

TEST(discovery_links, unusable_interfaces_are_not_used) {
    auto one = interface({address("192.168.1.5", 24)});
    one.is_usable = false;
    EXPECT_TRUE(choose(one).links.empty());
}

TEST(discovery_links, a_sender_is_on_the_link_if_it_has_a_prefix_of_the_interface) {
    const link where{.key = {.interface = 2},
                     .advertised = {},
                     .all = {address("192.168.1.5", 23), address("fd00:1::5", 64)}};
    EXPECT_TRUE(is_on_link(where, bytes("192.168.0.9")));
    EXPECT_FALSE(is_on_link(where, bytes("192.168.2.9")));
    EXPECT_TRUE(is_on_link(where, bytes("fd00:1::9")));
    EXPECT_FALSE(is_on_link(where, bytes("fd00:2::9")));
    EXPECT_TRUE(is_on_link(where, bytes("fe80::9")));
}

}  // namespace
}  // namespace sluice::discovery

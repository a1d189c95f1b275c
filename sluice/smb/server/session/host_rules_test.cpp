#include "sluice/smb/server/session/host_rules.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

[[nodiscard]] ip_bytes address(std::string_view text) {
    return io::socket_address::ip(text, 445).value().ip_bytes();
}
[[nodiscard]] ip_network network(std::string_view text) {
    return ip_network::parse(text).value();
}

TEST(ip_network, contains_the_addresses_of_its_prefix) {
    EXPECT_TRUE(network("192.168.0.0/16").contains(address("192.168.255.1")));
    EXPECT_FALSE(network("192.168.0.0/16").contains(address("192.169.0.1")));
    EXPECT_TRUE(network("10.0.0.8/29").contains(address("10.0.0.15")));
    EXPECT_FALSE(network("10.0.0.8/29").contains(address("10.0.0.16")));
    EXPECT_TRUE(network("10.0.0.5").contains(address("10.0.0.5")));
    EXPECT_FALSE(network("10.0.0.5").contains(address("10.0.0.4")));
    EXPECT_TRUE(network("fe80::/10").contains(address("febf::1")));
    EXPECT_FALSE(network("fe80::/10").contains(address("fec0::1")));
    EXPECT_TRUE(network("2001:db8::5").contains(address("2001:db8::5")));
}

TEST(ip_network, treats_a_mapped_address_as_the_ipv4_address) {
    EXPECT_TRUE(network("192.168.0.0/16").contains(address("::ffff:192.168.3.4")));
    EXPECT_TRUE(network("::ffff:10.0.0.5").contains(address("10.0.0.5")));
    EXPECT_TRUE(network("::ffff:10.0.0.0/104").contains(address("10.9.9.9")));
}

TEST(ip_network, of_all_addresses_of_one_family_excludes_the_other) {
    EXPECT_TRUE(network("0.0.0.0/0").contains(address("203.0.113.9")));
    EXPECT_FALSE(network("0.0.0.0/0").contains(address("2001:db8::1")));
    EXPECT_TRUE(network("::/0").contains(address("2001:db8::1")));
    EXPECT_FALSE(network("::/0").contains(address("203.0.113.9")));
    EXPECT_FALSE(network("::/0").contains(address("::ffff:203.0.113.9")));
}

TEST(ip_network, ignores_the_scope_of_a_client) {
    EXPECT_TRUE(network("fe80::/10").contains(address("fe80::1%1")));
}

TEST(ip_network, refuses_other_texts) {
    for (const char* const text :
         {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8x",
          "10.0.0.0/8/8", "10.0.0.1/8", "::/129", "::1/64", "host.example", "fe80::1%eth0", "fe80::%1/10",
          "10.0.0", " 10.0.0.1", "10.0.0.0/99999999999999999999", "*"})
        EXPECT_FALSE(ip_network::parse(text)) << text;
}

TEST(host_rules, deny_an_address_that_is_allowed_and_denied) {
    const host_rules some{.allowed = {network("192.168.0.0/16")}, .denied = {network("192.168.3.0/24")}};
    EXPECT_TRUE(some.permit(address("192.168.2.1")));
    EXPECT_FALSE(some.permit(address("192.168.3.1")));
    EXPECT_FALSE(some.permit(address("::ffff:192.168.3.1")));
}

TEST(host_rules, deny_all_others_if_any_address_is_allowed) {
    const host_rules some{.allowed = {network("10.0.0.5"), network("fe80::/10")}, .denied = {}};
    EXPECT_TRUE(some.permit(address("10.0.0.5")));
    EXPECT_TRUE(some.permit(address("fe80::7")));
    EXPECT_FALSE(some.permit(address("10.0.0.6")));
    EXPECT_FALSE(some.permit(address("::1")));
}

TEST(host_rules, permit_all_that_are_not_denied_if_none_is_allowed) {
    const host_rules some{.allowed = {}, .denied = {network("10.0.0.5")}};
    EXPECT_FALSE(some.permit(address("10.0.0.5")));
    EXPECT_TRUE(some.permit(address("10.0.0.6")));
    EXPECT_TRUE(host_rules().permit(address("::1")));
    EXPECT_FALSE(host_rules().are_given());
}

}  // namespace
}  // namespace sluice::smb::server

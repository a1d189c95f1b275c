#include "sluice/smb/server/session/client_address.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

client_address of(const char* text) {
    return client_address(io::socket_address::ip(text, 445).value());
}

TEST(client_address, is_the_same_for_all_ports_and_both_forms_of_an_ipv4_address) {
    EXPECT_EQ(client_address(io::socket_address::ip("10.0.0.1", 1).value()), of("10.0.0.1"));
    EXPECT_EQ(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    EXPECT_NE(of("10.0.0.2"), of("10.0.0.1"));
    EXPECT_EQ(of("10.0.0.1").text(), "10.0.0.1");
}

TEST(client_address, is_the_network_of_64_bits_of_an_ipv6_address) {
    EXPECT_EQ(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
    EXPECT_NE(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
    EXPECT_EQ(of("2001:db8:0:1::1").text(), "2001:0db8:0000:0001::/64");
}

TEST(client_address, is_as_much_of_an_ipv6_address_as_is_asked_for) {
    const auto one = io::socket_address::ip("2001:db8:0:1::1", 445).value();
    const auto neighbour = io::socket_address::ip("2001:db8:0:1::2", 445).value();
    const auto elsewhere = io::socket_address::ip("2001:db8:0:2::1", 445).value();
    EXPECT_NE(client_address(one, 128), client_address(neighbour, 128));
    EXPECT_EQ(client_address(one, 48), client_address(elsewhere, 48));
    EXPECT_EQ(client_address(one, 48).text(), "2001:0db8:0000::/48");
}

TEST(client_address, is_the_whole_address_on_a_link) {
    EXPECT_NE(of("fe80::1"), of("fe80::2"));
}

TEST(client_address, is_the_same_for_all_unix_sockets) {
    EXPECT_EQ(client_address(io::socket_address::local("/a").value()),
              client_address(io::socket_address::local("/b").value()));
    EXPECT_EQ(client_address(io::socket_address::local("/a").value()).text(), "-");
}

}  // namespace
}  // namespace sluice::smb::server

#include "sluice/cli/serve/interfaces.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sluice::cli {
namespace {

std::vector<smb::server::network_interface> advertised_by(std::vector<std::string> texts) {
    const auto advertised = parse_advertised(texts);
    EXPECT_TRUE(advertised.has_value()) << advertised.error();
    return advertised.value_or(std::vector<smb::server::network_interface>{});
}

std::string validate(std::string text) {
    const auto advertised = parse_advertised(std::array{std::move(text)});
    return advertised ? std::string() : advertised.error();
}

TEST(advertised, addresses_default_to_a_gigabit_and_an_interface_each) {
    const auto advertised = advertised_by({"192.0.2.5", "2001:db8::5,speed=2.5g,rss,index=1"});
    ASSERT_EQ(advertised.size(), 2U);
    EXPECT_EQ(advertised[0].address, io::socket_address::ip("192.0.2.5", 0).value());
    EXPECT_EQ(advertised[0].bits_per_second, 1'000'000'000U);
    EXPECT_EQ(advertised[0].index, 1U);
    EXPECT_FALSE(advertised[0].can_spread_receives);
    EXPECT_EQ(advertised[1].bits_per_second, 2'500'000'000U);
    EXPECT_EQ(advertised[1].index, 1U);
    EXPECT_TRUE(advertised[1].can_spread_receives);
    EXPECT_EQ(advertised_by({"192.0.2.5", "192.0.2.6"})[1].index, 2U);
}

TEST(advertised, speeds_are_bits_a_second_with_or_without_a_unit) {
    EXPECT_EQ(advertised_by({"192.0.2.5,speed=100m"})[0].bits_per_second, 100'000'000U);
    EXPECT_EQ(advertised_by({"192.0.2.5,speed=40G"})[0].bits_per_second, 40'000'000'000U);
    EXPECT_EQ(advertised_by({"192.0.2.5,speed=12345"})[0].bits_per_second, 12345U);
    for (const char* const wrong : {"speed=", "speed=fast", "speed=10gb", "speed=0", "speed=-1g",
                                    "speed=1e99g", "speed=nan", "index=0", "index=x", "rdma", ""})
        EXPECT_NE(validate("192.0.2.5," + std::string(wrong)), "") << wrong;
}

TEST(advertised, none_advertises_no_interface_and_host_names_are_rejected) {
    EXPECT_TRUE(advertised_by({"none"}).empty());
    EXPECT_NE(validate("server.example"), "");
}

TEST(own_interfaces, are_those_of_the_listening_address) {
    const std::array here{io::socket_address::ip("127.0.0.1", 445).value()};
    const auto advertised = own_interfaces(here);
    ASSERT_EQ(advertised.size(), 1U);
    EXPECT_EQ(advertised[0].address, io::socket_address::ip("127.0.0.1", 0).value());
    EXPECT_TRUE(advertised[0].can_spread_receives) << "the interface has no device";
}

TEST(own_interfaces, exclude_link_local_and_loopback_addresses_if_there_are_others) {
    const std::array everywhere{io::socket_address::any_v6(445)};
    const auto advertised = own_interfaces(everywhere);
    for (const auto& one : advertised) {
        const std::string text = one.address.text();
        EXPECT_FALSE(text.starts_with("[fe80") or text.starts_with("169.254.")) << text;
        EXPECT_FALSE(text.starts_with("127.") and advertised.size() > 2) << text;
    }
}

}  // namespace
}  // namespace sluice::cli

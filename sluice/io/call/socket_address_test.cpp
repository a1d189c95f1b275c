#include "sluice/io/call/socket_address.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace sluice::io {
namespace {

using namespace std::string_view_literals;

static_assert(std::is_trivially_copyable_v<socket_address>);
static_assert(noexcept(socket_address::ip("", 0)) and noexcept(socket_address::parse("")) and
              noexcept(socket_address::local("")));

TEST(socket_address, an_ip_v4_address_is_written_as_it_was_read) {
    const auto address = socket_address::ip("192.0.2.7", 445).value();
    EXPECT_EQ(address.family(), address_family::ip_v4);
    EXPECT_EQ(address.port(), 445);
    EXPECT_EQ(address.text(), "192.0.2.7:445");
}

TEST(socket_address, an_ip_v6_address_is_written_in_brackets_and_shortest) {
    const auto address = socket_address::ip("2001:db8:0:0:0:0:0:1", 65535).value();
    EXPECT_EQ(address.family(), address_family::ip_v6);
    EXPECT_EQ(address.text(), "[2001:db8::1]:65535");
}

TEST(socket_address, a_scope_is_read_by_name_or_number_and_written_by_name) {
    EXPECT_EQ(socket_address::ip("fe80::1%1", 1).value().text(), "[fe80::1%lo]:1");
    EXPECT_EQ(socket_address::ip("fe80::1%lo", 1).value(), socket_address::ip("fe80::1%1", 1).value());
    EXPECT_NE(socket_address::ip("fe80::1%2", 1).value(), socket_address::ip("fe80::1%1", 1).value());
    EXPECT_EQ(socket_address::ip("fe80::1%4000000000", 1).value().text(), "[fe80::1%4000000000]:1");
}

TEST(socket_address, text_that_is_not_a_numeric_address_is_refused) {
    for (const auto text :
         {""sv, "localhost"sv, "1.2.3"sv, "1.2.3.4.5"sv, "256.1.1.1"sv, "1.2.3.4 "sv, " 1.2.3.4"sv,
          "1.2.3.4\0x"sv, "::1\0"sv, ":::"sv, "[::1]"sv, "fe80::1%"sv, "fe80::1%no-such-interface"sv,
          "fe80::1%0"sv, "1.2.3.4%lo"sv,
          "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"sv}) {
        const auto parsed = socket_address::ip(text, 1);
        ASSERT_FALSE(parsed.has_value()) << text;
        EXPECT_EQ(parsed.error(), std::errc::invalid_argument);
    }
}

TEST(socket_address, well_known_addresses_have_their_names) {
    EXPECT_EQ(socket_address::any_v4(1).text(), "0.0.0.0:1");
    EXPECT_EQ(socket_address::any_v6(2).text(), "[::]:2");
    EXPECT_EQ(socket_address::loopback_v4(3).text(), "127.0.0.1:3");
    EXPECT_EQ(socket_address::loopback_v6(4).text(), "[::1]:4");
    EXPECT_EQ(socket_address().text(), "-");
    EXPECT_EQ(socket_address().family(), address_family::unspecified);
}

TEST(socket_address, a_unix_socket_has_a_path_or_an_abstract_name) {
    const auto path = socket_address::local("/run/sluice").value();
    EXPECT_EQ(path.family(), address_family::local);
    EXPECT_EQ(path.port(), 0);
    EXPECT_EQ(path.text(), "unix:/run/sluice");
    EXPECT_EQ(path.local_name(), "/run/sluice");
    const auto abstract = socket_address::local("\0sluice"sv).value();
    EXPECT_EQ(abstract.text(), "unix:@sluice");
    EXPECT_EQ(abstract.local_name(), "\0sluice"sv);
    EXPECT_NE(abstract, path);
}

TEST(socket_address, a_unix_path_of_107_bytes_is_the_longest) {
    EXPECT_EQ(socket_address::local(std::string(107, 'x')).value().text(), "unix:" + std::string(107, 'x'));
    EXPECT_EQ(socket_address::local(std::string(108, 'x')).error(), std::errc::filename_too_long);
    EXPECT_EQ(socket_address::local("").error(), std::errc::invalid_argument);
    EXPECT_EQ(socket_address::local("a\0b"sv).error(), std::errc::invalid_argument);
}

TEST(socket_address, text_that_was_written_is_read_back_as_the_same_address) {
    for (const auto text : {"127.0.0.1:0", "[::1]:445", "[fe80::1%lo]:9", "unix:/a b", "unix:@name"}) {
        const auto parsed = socket_address::parse(text);
        ASSERT_TRUE(parsed.has_value()) << text;
        EXPECT_EQ(parsed->text(), text);
        EXPECT_EQ(socket_address::parse(parsed->text()).value(), *parsed);
    }
}

TEST(socket_address, ipv4_and_its_mapped_ipv6_form_have_the_same_ip_bytes) {
    const auto plain = socket_address::ip("10.1.2.3", 445).value();
    EXPECT_EQ(plain.ip_bytes(), socket_address::ip("::ffff:10.1.2.3", 9).value().ip_bytes());
    EXPECT_NE(plain.ip_bytes(), socket_address::ip("10.1.2.4", 445).value().ip_bytes());
    EXPECT_EQ(socket_address::ip("2001:db8::1", 445).value().ip_bytes()[15], std::byte{1});
    EXPECT_EQ(socket_address::local("/run/x").value().ip_bytes(), (std::array<std::byte, 16>{}));
}

TEST(socket_address, malformed_text_is_refused) {
    for (const auto text :
         {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:+1", "1.2.3.4:1x",
          "::1:445", "[::1]", "[::1]445", "[1.2.3.4]:1", "[::1:445", "::1]:445", "unix:", "tcp:1.2.3.4:1"}) {
        EXPECT_FALSE(socket_address::parse(text).has_value()) << text;
    }
    EXPECT_EQ(socket_address::parse("unix:@" + std::string(107, 'x')).error(), std::errc::filename_too_long);
}

TEST(socket_address, the_terminator_the_kernel_counts_does_not_make_another_address) {
    const auto address = socket_address::local("/run/x").value();
    socket_address shorter = address;
    shorter.resize(address.size() - 1);
    EXPECT_EQ(shorter, address);
    EXPECT_EQ(shorter.text(), address.text());
}

}  // namespace
}  // namespace sluice::io

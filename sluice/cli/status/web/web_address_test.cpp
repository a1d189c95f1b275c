#include "sluice/cli/status/web/web_address.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

[[nodiscard]] io::socket_address own(const std::string& text = "127.0.0.1:9446") {
    return web_address(text).value();
}

TEST(web_address, a_page_is_at_a_loopback_address_or_at_a_path) {
    EXPECT_EQ(web_address("9446")->text(), "127.0.0.1:9446");
    EXPECT_EQ(web_address("127.8.4.4:1")->text(), "127.8.4.4:1");
    EXPECT_EQ(web_address("[::1]:0")->text(), "[::1]:0");
    EXPECT_EQ(web_address("[::ffff:127.0.0.1]:1")->port(), 1);
    EXPECT_EQ(web_address("unix:/run/sluice/web.sock")->text(), "unix:/run/sluice/web.sock");
    EXPECT_EQ(validate_web(""), "");
}

TEST(web_address, an_address_that_other_hosts_reach_is_refused_with_the_remedy) {
    for (const std::string text : {"0.0.0.0:9446", "[::]:9446", "192.0.2.1:9446", "[2001:db8::1]:9446",
                                   "[::ffff:192.0.2.1]:1", "[fe80::1]:1", "128.0.0.1:1"})
        EXPECT_NE(validate_web(text).find("use 'ssh -L' or a reverse proxy"), std::string::npos) << text;
    for (const std::string text :
         {"localhost:9446", "70000", "unix:", "unix:relative", "unix:@abstract", "x"})
        EXPECT_NE(validate_web(text).find("use a"), std::string::npos) << text;
}

TEST(web_address, only_its_own_host_names_are_answered) {
    for (const std::string_view host :
         {"localhost", "localhost:9446", "127.0.0.1:8080", "[::1]", "[::1]:1", "localhost:"})
        EXPECT_TRUE(is_own_host(host, own())) << host;
    for (const std::string_view host :
         {"", "evil.example", "evil.example:9446", "localhost.evil.example", "127.0.0.1.evil.example",
          "localhost:x", "127.0.0.2", "[::1", "::1", "localhost@evil.example", "localhost:1:2", "xlocalhost",
          "LOCALHOST."})
        EXPECT_FALSE(is_own_host(host, own())) << host;
    EXPECT_TRUE(is_own_host("127.8.4.4:9446", own("127.8.4.4:9446")));
    EXPECT_FALSE(is_own_host("evil.example", own("unix:/x")));
    EXPECT_TRUE(is_own_host("localhost", own("unix:/x")));
}

TEST(web_address, a_form_of_another_site_is_refused) {
    const std::string_view host = "localhost:9446";
    EXPECT_TRUE(is_own_form({.host = host, .fetch_site = "same-origin"}));
    EXPECT_TRUE(is_own_form({.host = host, .origin = "https://files.example", .fetch_site = "same-origin"}))
        << "through a reverse proxy";
    EXPECT_TRUE(is_own_form({.host = host, .origin = "http://localhost:9446"}));
    EXPECT_TRUE(is_own_form({.host = host}));
    for (const std::string_view site : {"cross-site", "same-site", "none", "x"})
        EXPECT_FALSE(is_own_form({.host = host, .origin = "http://localhost:9446", .fetch_site = site}))
            << site;
    for (const std::string_view origin : {"null", "http://evil.example", "http://localhost",
                                          "http://localhost:1", "https://localhost:9446", "localhost:9446"})
        EXPECT_FALSE(is_own_form({.host = host, .origin = origin})) << origin;
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/smb/client/url.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::client {
namespace {

TEST(smb_url, identifies_a_path_on_a_server) {
    const auto url = parse_url("smb://work;me%40home@server:4450/Share/a%20b/c/");
    ASSERT_TRUE(url) << url.error();
    EXPECT_EQ(*url, (smb_url{.domain = "work",
                             .user = "me@home",
                             .host = "server",
                             .port = 4450,
                             .share = "Share",
                             .path = "a b/c"}));
    EXPECT_EQ(url->text(), "smb://server:4450/Share/a b/c");
}

TEST(smb_url, accepts_addresses_of_both_kinds) {
    const auto six = parse_url("smb://me@[fe80::1%25eth0]:4450/s");
    ASSERT_TRUE(six) << six.error();
    EXPECT_EQ(six->port, 4450);
    EXPECT_EQ(six->host, "fe80::1%eth0");
    EXPECT_EQ(parse_url("smb://[::1]/s")->host, "::1");
    EXPECT_EQ(parse_url("smb://[::1]/s")->text(), "smb://[::1]/s");
    EXPECT_EQ(parse_url("smb://127.0.0.1/s")->port, smb_port);
}

TEST(smb_url, rejects_missing_parts_and_invalid_ones) {
    for (const char* const text :
         {"file:///x", "smb://", "smb://host", "smb://host/", "smb:///share", "smb://me:secret@host/s",
          "smb://::1/s", "smb://[::1/s", "smb://host:0/s", "smb://host:65536/s", "smb://host:/s",
          "smb://host:12x/s", "smb://host/s/../t", "smb://host/s/%2e%2e", "smb://host/s/%00",
          "smb://host/s/%4"})
        EXPECT_FALSE(parse_url(text)) << text;
}

TEST(smb_url, may_be_without_a_share_where_that_is_allowed) {
    for (const char* const text : {"smb://me@host", "//me@host", "//host/"}) {
        const auto url = parse_url(text, share_rule::optional);
        ASSERT_TRUE(url) << url.error();
        EXPECT_EQ(url->text(), "smb://host");
        EXPECT_TRUE(url->share.empty());
    }
    EXPECT_FALSE(parse_url("//", share_rule::optional));
    EXPECT_FALSE(parse_url("///share", share_rule::optional));
}

TEST(smb_url, has_a_short_form_without_the_scheme) {
    EXPECT_EQ(parse_url("//me@host:4450/share/a"), parse_url("smb://me@host:4450/share/a"));
    EXPECT_FALSE(is_smb_url("/host/share"));
}

TEST(smb_url, is_recognised_by_its_scheme_alone) {
    EXPECT_TRUE(is_smb_url("smb://"));
    EXPECT_FALSE(is_smb_url("/srv/smb"));
    EXPECT_FALSE(is_smb_url("https://host/share"));
}

TEST(smb_url, names_another_path_of_the_share) {
    EXPECT_EQ(parse_url("smb://me@host/share/a")->text_of("b/c"), "smb://host/share/b/c");
}

}  // namespace
}  // namespace sluice::smb::client

// URLs, and names that a server may not give.

#include <gtest/gtest.h>

#include "sluice/smb/client/directory.hpp"
#include "sluice/smb/client/status_text.hpp"
#include "sluice/smb/client/url.hpp"

namespace sluice::smb::client {
namespace {

TEST(smb_url, names_a_place_on_a_server) {
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

TEST(smb_url, takes_addresses_of_both_kinds) {
    const auto six = parse_url("smb://me@[fe80::1%25eth0]:4450/s");
    ASSERT_TRUE(six) << six.error();
    EXPECT_EQ(six->port, 4450);
    EXPECT_EQ(six->host, "fe80::1%eth0");
    EXPECT_EQ(parse_url("smb://[::1]/s")->host, "::1");
    EXPECT_EQ(parse_url("smb://[::1]/s")->text(), "smb://[::1]/s");
    EXPECT_EQ(parse_url("smb://127.0.0.1/s")->port, smb_port);
}

TEST(smb_url, refuses_what_names_nothing_or_too_much) {
    for (const char* const text :
         {"file:///x", "smb://", "smb://host", "smb://host/", "smb:///share", "smb://me:secret@host/s",
          "smb://::1/s", "smb://[::1/s", "smb://host:0/s", "smb://host:65536/s", "smb://host:/s",
          "smb://host:12x/s", "smb://host/s/../t", "smb://host/s/%2e%2e", "smb://host/s/%00",
          "smb://host/s/%4"})
        EXPECT_FALSE(parse_url(text)) << text;
}

TEST(remote_names, those_that_lead_elsewhere_are_not_safe) {
    for (const std::string_view name :
         {std::string_view(""), std::string_view("."), std::string_view(".."), std::string_view("a/b"),
          std::string_view("..\\x"), std::string_view("a\0b", 3)})
        EXPECT_FALSE(is_safe_name(name));
    for (const std::string_view name : {"a", "...", ".hidden", "x.y", " "})
        EXPECT_TRUE(is_safe_name(name)) << name;
}

TEST(client_error, has_an_errno_value_and_words_for_what_servers_say) {
    const auto full = client_error::of_status("write", wire::nt_status::disk_full);
    EXPECT_EQ(full.code(), ENOSPC);
    EXPECT_EQ(full.message(), "write: the volume is full (STATUS_DISK_FULL)");
    const auto odd = client_error::of_status("open", wire::nt_status(0xc0de'0001));
    EXPECT_EQ(odd.code(), EIO);
    EXPECT_EQ(odd.message(), "open: the server answered 0xc0de0001");
}

}  // namespace
}  // namespace sluice::smb::client

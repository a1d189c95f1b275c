#include "sluice/cli/doctor/remote/target.hpp"

#include <gtest/gtest.h>

namespace sluice::cli::doctor {
namespace {

TEST(doctor_target, accepts_a_host_with_or_without_port) {
    EXPECT_EQ(parse_target("nas")->host, "nas");
    EXPECT_EQ(parse_target("nas")->port, 445);
    EXPECT_EQ(parse_target("nas:1445")->port, 1445);
    EXPECT_EQ(parse_target("fe80::1")->host, "fe80::1");
    EXPECT_EQ(parse_target("[fe80::1]:1445")->host, "fe80::1");
    EXPECT_EQ(parse_target("[fe80::1]:1445")->port, 1445);
}

TEST(doctor_target, accepts_share_path_and_user) {
    const auto target = parse_target("//bob@nas:1445/media/films/one.mkv");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->user, "bob");
    EXPECT_EQ(target->share, "media");
    EXPECT_EQ(target->path, "films/one.mkv");
    EXPECT_EQ(target->text(), "//nas:1445/media/films/one.mkv");
    EXPECT_EQ(parse_target("smb://WORK;bob@nas/media")->domain, "WORK");
    EXPECT_EQ(parse_target("smb://nas")->host, "nas");
    EXPECT_EQ(parse_target("//nas/media/")->share, "media");
}

TEST(doctor_target, rejects_texts_without_a_host) {
    for (const char* const text : {"", "//", ":445", "nas:", "nas:0", "nas:70000", "nas:x", "[::1", "[::1]x",
                                   "[::1]:", "-oProxy", "a b", "a\x1b", "//bob@/media"})
        EXPECT_FALSE(parse_target(text)) << text;
}

TEST(doctor_target, rejects_a_password_without_repeating_it) {
    for (const char* const text :
         {"bob:secret@nas", "smb://bob:secret@nas/media", "//bob:secret@nas/media"}) {
        const auto target = parse_target(text);
        ASSERT_FALSE(target) << text;
        EXPECT_EQ(target.error().find("secret"), std::string::npos);
        EXPECT_EQ(without_password(text).find("secret"), std::string::npos);
    }
}

}  // namespace
}  // namespace sluice::cli::doctor

#include "sluice/cli/migration/smb_recycle.hpp"

#include <gmock/gmock.h>

#include <string>

namespace sluice::cli {
namespace {

std::string text_of(const smb_recycle_values& from) {
    return toml_text(converted_smb_recycle(from).value);
}

TEST(smb_recycle, has_the_defaults_of_samba) {
    EXPECT_EQ(text_of({}), "{ versions = false }");
    EXPECT_EQ(text_of({.versions = "yes"}), "true");
    EXPECT_EQ(text_of({.repository = ".recycle/%U", .keeptree = "yes", .versions = "yes"}), "true");
}

TEST(smb_recycle, converts_the_name_of_the_bin_and_lists) {
    EXPECT_EQ(text_of({.repository = ".bin/%u",
                       .versions = "true",
                       .exclude = "*.tmp ~$*",
                       .exclude_dir = "/cache tmp"}),
              R"({ directory = ".bin", exclude = ["*.tmp", "~$*", "cache", "tmp"] })");
}

TEST(smb_recycle, remarks_on_what_it_does_not_convert) {
    const auto remarks = [](const smb_recycle_values& from) { return converted_smb_recycle(from).remarks; };
    ASSERT_EQ(remarks({.keeptree = "yes"}).size(), 1U);
    EXPECT_THAT(remarks({.keeptree = "yes"}).back().text, testing::Not(testing::HasSubstr("keeptree")));
    EXPECT_THAT(remarks({}).back().text, testing::HasSubstr("keeptree"));
    EXPECT_TRUE(remarks({}).back().differs);
    for (const char* const name : {"/var/bin", "a/b", "%U", "..", ".bin/%m"}) {
        const auto found = remarks({.repository = name});
        ASSERT_EQ(found.size(), 2U) << name;
        EXPECT_EQ(found.front().parameter, "recycle:repository");
        EXPECT_EQ(text_of({.repository = name, .versions = "yes"}), "true") << name;
    }
    const auto lists = remarks({.exclude = "a/b *.o", .exclude_dir = "/x/y"});
    ASSERT_EQ(lists.size(), 4U);
    EXPECT_EQ(lists[0].parameter, "recycle:exclude");
    EXPECT_EQ(lists[1].parameter, "recycle:exclude_dir");
}

TEST(smb_recycle, has_at_most_as_many_patterns_as_a_share) {
    std::string many;
    for (int i = 0; i < 100; ++i)
        many += "*.e" + std::to_string(i) + " ";
    const smb_recycle done = converted_smb_recycle({.keeptree = "yes", .exclude = many});
    ASSERT_EQ(done.remarks.size(), 2U);
    EXPECT_THAT(done.remarks.front().text, testing::HasSubstr("not converted: 36"));
}

}  // namespace
}  // namespace sluice::cli

#include "sluice/smb/server/session/user_list.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

TEST(user_list, contains_its_names_in_any_case) {
    const user_list some{"Bob", "JOSÉ", "alice"};
    for (const char* const name : {"bob", "BOB", "josé", "Alice"})
        EXPECT_TRUE(some.contains(name)) << name;
    for (const char* const name : {"", "bo", "bobb", "carol"})
        EXPECT_FALSE(some.contains(name)) << name;
}

TEST(user_list, is_a_list_without_names_or_none) {
    const user_list empty(std::vector<std::string>{});
    EXPECT_TRUE(empty.is_given());
    EXPECT_FALSE(empty.contains("bob"));
    EXPECT_FALSE(user_list().is_given());
    EXPECT_FALSE(user_list().contains(""));
    EXPECT_NE(empty, user_list());
}

TEST(user_list, is_equal_regardless_of_order_case_and_repetition) {
    EXPECT_EQ((user_list{"a", "b"}), (user_list{"B", "A", "a"}));
    EXPECT_NE((user_list{"a", "b"}), (user_list{"a"}));
}

TEST(user_list, finds_each_of_a_thousand_names) {
    std::vector<std::string> names;
    for (int i = 0; i != 1000; ++i)
        names.push_back("user" + std::to_string(i * 7919 % 1000));
    const user_list many(names);
    for (int i = 0; i != 1000; ++i)
        EXPECT_TRUE(many.contains("USER" + std::to_string(i)));
    EXPECT_FALSE(many.contains("user1000"));
}

}  // namespace
}  // namespace sluice::smb::server

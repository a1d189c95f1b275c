#include "sluice/io/name/name_resolution.hpp"

#include <gtest/gtest.h>

namespace sluice::io {
namespace {

TEST(name_resolution, accepts_numeric_addresses_unchanged) {
    const auto four = resolve("127.0.0.1", 445);
    ASSERT_TRUE(four);
    ASSERT_EQ(four->size(), 1U);
    EXPECT_EQ(four->front().text(), "127.0.0.1:445");
    const auto six = resolve("::1", 4450);
    ASSERT_TRUE(six);
    EXPECT_EQ(six->front().text(), "[::1]:4450");
}

TEST(name_resolution, knows_this_machine) {
    const auto found = resolve("localhost", 445);
    ASSERT_TRUE(found);
    ASSERT_FALSE(found->empty());
    EXPECT_EQ(found->front().port(), 445);
}

TEST(name_resolution, names_the_host_that_it_does_not_find) {
    const auto none = resolve("no such name", 445);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message().find("no such name"), std::string::npos) << none.error().message();
}

TEST(name_resolution, refuses_a_name_with_a_nul) {
    EXPECT_EQ(resolve(std::string("localhost\0.example", 18), 445).error(), std::errc::invalid_argument);
}

}  // namespace
}  // namespace sluice::io

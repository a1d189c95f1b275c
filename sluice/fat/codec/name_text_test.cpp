#include "sluice/fat/codec/name_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace sluice::fat {
namespace {

// Lengths around the inline capacity, and far beyond.
class name_text_of_length : public testing::TestWithParam<std::size_t> {
protected:
    const std::string text_ = std::string(GetParam(), 'n') + (GetParam() == 0 ? "" : "!");
};
INSTANTIATE_TEST_SUITE_P(each, name_text_of_length,
                         testing::Values(0, 1, name_text::in_place_bytes - 2, name_text::in_place_bytes - 1,
                                         name_text::in_place_bytes, name_text::in_place_bytes + 1, 765));

TEST_P(name_text_of_length, keeps_its_text_when_copied_moved_and_assigned) {
    name_text first(text_);
    EXPECT_EQ(first.view(), text_);
    EXPECT_EQ(first.empty(), text_.empty());
    const name_text copy(first);
    const name_text moved(std::move(first));
    EXPECT_EQ(copy.view(), text_);
    EXPECT_EQ(moved.view(), text_);
    for (const std::size_t other : {std::size_t{3}, std::size_t{300}}) {
        name_text changed(std::string(other, 'o'));
        changed = copy;
        EXPECT_EQ(changed.view(), text_);
        changed = std::string(other, 'p');
        EXPECT_EQ(changed.view(), std::string(other, 'p'));
    }
}

TEST(name_text, is_equal_to_the_same_bytes) {
    EXPECT_TRUE(name_text("Name") == "Name");
    EXPECT_FALSE(name_text("Name") == "name");
}

}  // namespace
}  // namespace sluice::fat

#include "sluice/smb/server/open/open_state_word.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using ending = open_state_word::ending;

TEST(open_state_word, open_is_found_from_commit_until_its_end) {
    open_state_word state;
    EXPECT_FALSE(state.try_use());
    EXPECT_TRUE(state.commit());
    EXPECT_TRUE(state.try_use());
    EXPECT_EQ(state.end(), ending::now);
    EXPECT_FALSE(state.try_use());
    EXPECT_FALSE(state.end_use()) << "the request still uses it";
    EXPECT_TRUE(state.end_use());
}

TEST(open_state_word, one_of_two_ends_wins) {
    open_state_word state;
    EXPECT_TRUE(state.commit());
    EXPECT_EQ(state.end(), ending::now);
    EXPECT_EQ(state.end(), ending::lost);
    EXPECT_TRUE(state.end_use());
}

TEST(open_state_word, end_before_commit_leaves_the_file_to_the_create) {
    open_state_word state;
    EXPECT_EQ(state.end(), ending::by_create);
    EXPECT_EQ(state.end(), ending::lost);
    EXPECT_FALSE(state.commit());
    EXPECT_FALSE(state.try_use());
    EXPECT_TRUE(state.end_use());
}

TEST(open_state_word, last_change_leaves_the_file_of_an_ended_open) {
    open_state_word state;
    EXPECT_TRUE(state.commit());
    EXPECT_TRUE(state.try_use());
    EXPECT_TRUE(state.begin_change());
    EXPECT_TRUE(state.try_use());
    EXPECT_TRUE(state.begin_change());
    EXPECT_EQ(state.end(), ending::by_last_change);
    EXPECT_FALSE(state.begin_change());
    EXPECT_FALSE(state.end_change());
    EXPECT_TRUE(state.end_change());
    EXPECT_FALSE(state.has_changes());
    EXPECT_FALSE(state.end_use());
    EXPECT_FALSE(state.end_use());
    EXPECT_TRUE(state.end_use());
}

TEST(open_state_word, change_that_ends_before_the_open_has_no_duty) {
    open_state_word state;
    EXPECT_TRUE(state.commit());
    EXPECT_TRUE(state.try_use());
    EXPECT_TRUE(state.begin_change());
    EXPECT_FALSE(state.end_change());
    EXPECT_FALSE(state.end_use());
    EXPECT_EQ(state.end(), ending::now);
    EXPECT_TRUE(state.end_use());
}

TEST(open_state_word_death_test, use_that_ends_twice_stops_the_program) {
    open_state_word state;
    EXPECT_TRUE(state.commit());
    EXPECT_DEATH((void)state.end_use(), "an open uses itself");
    EXPECT_DEATH((void)state.end_change(), "a change ends once");
}

}  // namespace
}  // namespace sluice::smb::server

#include "sluice/smb/server/file/naming_state.hpp"

#include <gtest/gtest.h>

#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::smb::server {
namespace {

constexpr vfs::file_key directory{.volume = 1, .file = 2};

class pending_creates_test : public testing::Test {
protected:
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    one_shot_event<wire::nt_status> woken{*loop};
    pending_creates creates;
};

TEST_F(pending_creates_test, second_create_of_a_name_waits_for_the_first) {
    pending_creates::place first(name_key(directory, "Report.TXT"));
    pending_creates::place second(name_key(directory, "report.txt"));
    {
        pending_create_waiting blocked(creates, second.name(), woken);
        EXPECT_TRUE(creates.begin(first, blocked.place()));
        EXPECT_FALSE(creates.begin(second, blocked.place()));
        EXPECT_FALSE(woken.is_set());
        creates.end(first);
        EXPECT_TRUE(woken.is_set());
    }
    pending_create_waiting blocked(creates, second.name(), woken);
    EXPECT_TRUE(creates.begin(second, blocked.place()));
    creates.end(second);
    creates.end(second);
}

TEST_F(pending_creates_test, names_of_other_directories_and_streams_do_not_wait) {
    pending_creates::place first(name_key(directory, "a"));
    pending_creates::place stream(name_key(directory, "a", 7));
    pending_creates::place elsewhere(name_key({.volume = 1, .file = 3}, "a"));
    waiter blocked(woken);
    EXPECT_TRUE(creates.begin(first, blocked));
    EXPECT_TRUE(creates.begin(stream, blocked));
    EXPECT_TRUE(creates.begin(elsewhere, blocked));
    creates.end(first);
    creates.end(stream);
    creates.end(elsewhere);
}

TEST_F(pending_creates_test, lookup_waits_for_a_pending_name) {
    const name_key name(directory, "a");
    pending_creates::place first(name);
    {
        pending_create_waiting blocked(creates, name, woken);
        EXPECT_FALSE(creates.is_pending(name, blocked.place()));
        EXPECT_TRUE(creates.begin(first, blocked.place()));
        EXPECT_TRUE(creates.is_pending(name, blocked.place()));
        creates.end(first);
        EXPECT_TRUE(woken.is_set());
        EXPECT_FALSE(creates.is_pending(name, blocked.place()));
    }
}

TEST_F(pending_creates_test, waiter_that_leaves_is_not_woken) {
    const name_key name(directory, "a");
    pending_creates::place first(name);
    waiter unused(woken);
    EXPECT_TRUE(creates.begin(first, unused));
    {
        pending_create_waiting blocked(creates, name, woken);
        EXPECT_TRUE(creates.is_pending(name, blocked.place()));
    }
    creates.end(first);
    EXPECT_FALSE(woken.is_set());
}

TEST(naming_states, each_domain_has_one_state) {
    naming_states all;
    naming_state& one = all.of(1);
    EXPECT_EQ(&one, &all.of(1));
    EXPECT_NE(&one, &all.of(2));
    EXPECT_EQ(all.size(), 2U);
}

TEST(naming_state, removal_count_rises_with_each_removal) {
    naming_state state;
    EXPECT_EQ(state.removals(), 0U);
    state.count_removal();
    EXPECT_EQ(state.removals(), 1U);
}

TEST(naming_state, change_count_rises_with_removals_and_all_other_changes_of_names) {
    naming_state state;
    state.record_change();
    EXPECT_EQ(state.changes(), 1U);
    EXPECT_EQ(state.removals(), 0U);
    state.count_removal();
    EXPECT_EQ(state.changes(), 2U);
}

}  // namespace
}  // namespace sluice::smb::server

#include "sluice/smb/server/open/notify_watch.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/base/clock.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/open/scripted_feed_testing.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

namespace sluice::smb::server {

namespace {

using vfs::change_kind;
using wire::completion_filter;
using wire::notify_action;
using wire::nt_status;

class notify_watch_test : public testing::Test {
protected:
    void begin(completion_filter filter) {
        watch = notify_watch::begin(feed, *root, {.filter = filter, .recursive = false}).value();
    }
    void deliver(change_kind kind, std::string_view path, bool is_directory = false) {
        feed.listener->changed({.kind = kind, .is_directory = is_directory, .path = path});
    }
    // Returns the text of a reply with room for `bytes`: "+name" added, "-" removed, "*" modified,
    // "<", ">" renamed.
    [[nodiscard]] std::string taken(std::size_t bytes = 4096) {
        std::vector<std::byte> room(bytes);
        wire::notify_writer list{mutable_bytes(room)};
        if (watch->take(list) == nt_status::notify_enum_dir) return "look for yourself";
        std::string text;
        wire::notify_reader reader(list.bytes());
        for (auto next = reader.next().value(); next; next = reader.next().value()) {
            constexpr std::string_view signs = " +-*<>";
            text += signs[static_cast<std::size_t>(next->action)];
            text += wire::utf8_of(next->name_utf16).value();
        }
        return text;
    }

    system_clock_source clock;
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    vfs::memory_volume volume{*loop, clock};
    vfs::node_ptr root = volume.find("", vfs::follow_links::yes).value();
    scripted_feed feed;
    std::unique_ptr<notify_watch> watch;
};

TEST_F(notify_watch_test, changes_are_queued_until_a_request_asks) {
    begin(completion_filter::file_name);
    deliver(change_kind::added, "a");
    deliver(change_kind::removed, "dir/b");
    one_shot_event<nt_status> notified(*loop);
    watch->wait(notified);
    EXPECT_TRUE(notified.is_set());
    EXPECT_EQ(taken(), "+a-dir\\b");
    watch->forget(notified);
}

TEST_F(notify_watch_test, names_of_files_and_of_directories_are_distinguished) {
    begin(completion_filter::directory_name);
    deliver(change_kind::added, "file");
    deliver(change_kind::added, "directory", true);
    deliver(change_kind::modified, "file");
    EXPECT_EQ(taken(), "+directory");
}

TEST_F(notify_watch_test, one_write_after_another_is_one_change) {
    begin(completion_filter::size);
    for (const char* const path : {"a", "a", "b", "a"})
        deliver(change_kind::modified, path);
    EXPECT_EQ(taken(), "*a*b*a");
}

TEST_F(notify_watch_test, both_names_of_a_rename_stand_side_by_side) {
    begin(completion_filter::file_name);
    deliver(change_kind::renamed_old_name, "old");
    deliver(change_kind::renamed_new_name, "new");
    EXPECT_EQ(taken(), "<old>new");
}

// As in Windows, a rename sets the archive attribute.
TEST_F(notify_watch_test, a_rename_is_a_change_of_attributes_of_a_file_but_not_of_a_directory) {
    begin(completion_filter::attributes);
    deliver(change_kind::renamed_old_name, "old");
    deliver(change_kind::renamed_new_name, "new");
    deliver(change_kind::renamed_new_name, "directory", true);
    EXPECT_EQ(taken(), "*new");
}

TEST_F(notify_watch_test, changes_that_do_not_fit_are_lost_and_the_client_must_list_the_directory) {
    begin(completion_filter::file_name);
    deliver(change_kind::added, "a name that is longer than the room for it");
    EXPECT_EQ(taken(32), "look for yourself");
    deliver(change_kind::added, "b");
    EXPECT_EQ(taken(32), "+b");
}

TEST_F(notify_watch_test, more_changes_than_are_kept_are_lost_together) {
    begin(completion_filter::file_name);
    for (std::size_t i = 0; i != limits::notify_changes_max + 1; ++i)
        deliver(change_kind::added, std::to_string(i));
    EXPECT_EQ(taken(1U << 20), "look for yourself");
}

TEST_F(notify_watch_test, requests_take_turns_in_the_order_they_came) {
    begin(completion_filter::file_name);
    one_shot_event<nt_status> first(*loop);
    one_shot_event<nt_status> second(*loop);
    watch->wait(first);
    watch->wait(second);
    deliver(change_kind::added, "a");
    EXPECT_TRUE(first.is_set());
    EXPECT_FALSE(second.is_set());
    deliver(change_kind::added, "b");
    EXPECT_EQ(taken(), "+a+b") << "the first has not taken yet, and takes all";
    watch->forget(first);
    EXPECT_FALSE(second.is_set());
    deliver(change_kind::added, "c");
    EXPECT_TRUE(second.is_set());
    watch->forget(second);
}

TEST_F(notify_watch_test, the_turn_of_a_waiter_that_leaves_without_taking_passes_on) {
    begin(completion_filter::file_name);
    one_shot_event<nt_status> first(*loop);
    one_shot_event<nt_status> second(*loop);
    watch->wait(first);
    watch->wait(second);
    deliver(change_kind::added, "a");
    watch->forget(first);
    EXPECT_TRUE(second.is_set());
    EXPECT_EQ(taken(), "+a");
    watch->forget(second);
}

TEST_F(notify_watch_test, a_waiter_gets_the_status_of_the_watchs_end) {
    one_shot_event<nt_status> closed(*loop);
    begin(completion_filter::file_name);
    watch->wait(closed);
    watch.reset();
    EXPECT_EQ(closed.value(), nt_status::notify_cleanup);

    one_shot_event<nt_status> before(*loop);
    one_shot_event<nt_status> after(*loop);
    begin(completion_filter::file_name);
    watch->wait(before);
    feed.listener->ended();
    watch->wait(after);
    EXPECT_EQ(before.value(), nt_status::delete_pending);
    EXPECT_EQ(after.value(), nt_status::delete_pending);
}

// One client's share of ten of each resource.
class counted_notify_watch : public notify_watch_test {
protected:
    ~counted_notify_watch() override { watch.reset(); }

    static shared_bounds of_each(std::size_t amount) {
        shared_bounds all{};
        all.fill(amount);
        return all;
    }

    silent_log log_;
    limit_rejections rejections_{log_, clock};
    client_quotas quotas_{of_each(10), rejections_};
};

TEST_F(counted_notify_watch, has_its_client_hold_each_directory_that_is_watched_and_one_at_least) {
    watch = notify_watch::begin(
                feed, *root, {.filter = completion_filter::file_name},
                {.directories = quotas_.take(quotas_.user("u"), limit::watches), .change_bytes = {}})
                .value();
    EXPECT_TRUE(feed.listener->may_watch(5));
    EXPECT_EQ(quotas_.in_use(limit::watches), 5U);
    EXPECT_FALSE(feed.listener->may_watch(6)) << "half is for others";
    EXPECT_EQ(quotas_.in_use(limit::watches), 5U);
    EXPECT_TRUE(feed.listener->may_watch(0));
    EXPECT_EQ(quotas_.in_use(limit::watches), 1U);
    watch.reset();
    EXPECT_EQ(quotas_.in_use(limit::watches), 0U);
}

TEST_F(counted_notify_watch, drops_changes_that_no_client_is_charged_for) {
    watch = notify_watch::begin(
                feed, *root, {.filter = completion_filter::file_name},
                {.directories = quotas_.take(quotas_.user("u"), limit::watches), .change_bytes = {}})
                .value();
    deliver(change_kind::added, "a");
    EXPECT_EQ(taken(), "look for yourself");
}

}  // namespace

}  // namespace sluice::smb::server

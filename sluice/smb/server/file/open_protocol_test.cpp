#include "sluice/smb/server/file/open_protocol.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::smb::server {
namespace {

using verdict = open_protocol::verdict;
using wire::access_mask;
using wire::share_access;

constexpr sharing shared_read{.access = access_mask::read_data, .share = share_access::read};
constexpr sharing shared_write{.access = access_mask::write_data, .share = share_access::read};
constexpr sharing shares_all{.access = access_mask::read_data | access_mask::delete_object,
                             .share = share_access::read | share_access::write | share_access::remove};

class open_protocol_test : public testing::Test {
protected:
    [[nodiscard]] verdict join(share_entry& entry, const sharing& mode = shares_all) {
        return join(file, entry, mode);
    }
    [[nodiscard]] verdict join(open_protocol& at, share_entry& entry, const sharing& mode = shares_all) {
        waiting<open_protocol> blocked(at, woken);
        return at.join(entry, mode, blocked.place());
    }
    void open(share_entry& entry, const sharing& mode = shares_all) { open(file, entry, mode); }
    void open(open_protocol& at, share_entry& entry, const sharing& mode = shares_all) {
        ASSERT_EQ(join(at, entry, mode), verdict::granted);
        at.commit(entry, mode);
    }
    // The last open of a file to be deleted has gone.
    void close_last(share_entry& entry) {
        file.set_delete_pending();
        ASSERT_TRUE(file.leave(entry).of_this);
    }
    // The removal of the file waits for the mark.
    void close_last_under_a_mark(name_right& mark, name_right& removal) {
        open(first);
        EXPECT_TRUE(file.mark(mark));
        close_last(first);
        EXPECT_FALSE(file.begin_removal(removal));
    }
    // A mark waits for the CREATE of `first`, and `second` waits for the mark.
    void mark_during_a_create(name_right& mark, waiting<open_protocol>& blocked) {
        EXPECT_EQ(join(first), verdict::granted);
        EXPECT_FALSE(file.mark(mark));
        EXPECT_EQ(file.join(second, shares_all, blocked.place()), verdict::blocked);
    }

    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    one_shot_event<wire::nt_status> woken{*loop};
    one_shot_event<wire::nt_status> granted{*loop};
    open_protocol file;
    open_protocol stream{&file};
    share_entry first;
    share_entry second;
};

TEST_F(open_protocol_test, version_of_the_name_changes_with_a_rename_and_ends_with_a_replacement) {
    open(first);
    const auto before = stream.name_version();
    ASSERT_TRUE(before.has_value());
    name_right mark(granted);
    ASSERT_TRUE(file.mark(mark));
    EXPECT_EQ(stream.name_version(), std::nullopt);
    (void)file.unmark(mark);
    EXPECT_NE(stream.name_version(), std::nullopt);
    EXPECT_NE(stream.name_version(), before);
    ASSERT_TRUE(file.mark(mark));
    EXPECT_FALSE(file.unmark(mark, true)) << "it is still open";
    EXPECT_EQ(stream.name_version(), std::nullopt);
    (void)file.leave(first);
}

TEST_F(open_protocol_test, conflict_with_an_open_is_a_sharing_violation) {
    open(first, shared_read);
    EXPECT_EQ(join(second, shared_write), verdict::sharing_violation);
    EXPECT_FALSE(second.is_inside());
    EXPECT_EQ(join(second, shared_read), verdict::granted);
    (void)file.leave(first);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, conflict_with_a_joining_entry_waits_for_its_commit) {
    EXPECT_EQ(join(first, shared_read), verdict::granted);
    {
        waiting<open_protocol> blocked(file, woken);
        EXPECT_EQ(file.join(second, shared_write, blocked.place()), verdict::blocked);
        EXPECT_FALSE(woken.is_set());
        file.commit(first, shared_read);
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(join(second, shared_write), verdict::sharing_violation);
    (void)file.leave(first);
}

TEST_F(open_protocol_test, create_that_fails_lets_the_blocked_one_join) {
    EXPECT_EQ(join(first, shared_read), verdict::granted);
    {
        waiting<open_protocol> blocked(file, woken);
        EXPECT_EQ(file.join(second, shared_write, blocked.place()), verdict::blocked);
        const open_protocol::removal_duty duty = file.leave(first);
        EXPECT_FALSE(duty.of_this);
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(join(second, shared_write), verdict::granted);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, conflict_with_an_ended_open_waits_for_its_changes) {
    open(first, shared_write);
    file.end(first);
    {
        waiting<open_protocol> blocked(file, woken);
        EXPECT_EQ(file.join(second, shared_read, blocked.place()), verdict::blocked);
        (void)file.leave(first);
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(join(second, shared_read), verdict::granted);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, commit_may_keep_less_than_was_wanted) {
    constexpr sharing overwrites{.access = access_mask::read_data | access_mask::write_data,
                                 .share = share_access::read};
    EXPECT_EQ(join(first, overwrites), verdict::granted);
    file.commit(first, shared_read);
    EXPECT_EQ(join(second, shared_read), verdict::granted);
    (void)file.leave(first);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, entry_moves_from_its_create_to_its_open) {
    share_entry of_create;
    EXPECT_EQ(join(of_create), verdict::granted);
    first = std::move(of_create);
    file.commit(first, shares_all);
    EXPECT_EQ(first.state(), entry_state::committed);
    (void)file.leave(first);
    EXPECT_TRUE(file.entries().empty());
}

TEST_F(open_protocol_test, last_entry_to_leave_has_the_duty_to_remove_the_file) {
    open(first);
    open(second);
    file.set_delete_pending();
    share_entry third;
    EXPECT_EQ(join(third), verdict::delete_pending);
    EXPECT_FALSE(file.leave(first).of_this);
    EXPECT_TRUE(file.leave(second).of_this);
    EXPECT_FALSE(file.leave(second).of_this) << "an entry leaves once";
}

TEST_F(open_protocol_test, create_that_joined_before_the_disposition_has_the_duty_if_it_fails_last) {
    open(first);
    EXPECT_EQ(join(second), verdict::granted);
    file.set_delete_pending();
    EXPECT_FALSE(file.leave(first).of_this);
    EXPECT_TRUE(file.leave(second).of_this);
}

TEST_F(open_protocol_test, cleared_disposition_keeps_the_file) {
    open(first);
    file.set_delete_pending();
    file.clear_delete_pending();
    EXPECT_EQ(join(second), verdict::granted);
    EXPECT_FALSE(file.leave(first).of_this);
    EXPECT_FALSE(file.leave(second).of_this);
}

TEST_F(open_protocol_test, file_waits_for_the_entries_of_its_streams) {
    open(first);
    open(stream, second);
    file.set_delete_pending();
    EXPECT_FALSE(file.leave(first).of_this);
    const open_protocol::removal_duty duty = stream.leave(second);
    EXPECT_FALSE(duty.of_this);
    EXPECT_TRUE(duty.of_file);
}

TEST_F(open_protocol_test, stream_to_delete_goes_before_its_file) {
    open(first);
    open(stream, second);
    file.set_delete_pending();
    stream.set_delete_pending();
    (void)file.leave(first);
    const open_protocol::removal_duty duty = stream.leave(second);
    EXPECT_TRUE(duty.of_this);
    EXPECT_TRUE(duty.of_file);
}

TEST_F(open_protocol_test, streams_of_a_file_to_delete_cannot_be_opened) {
    open(first);
    file.set_delete_pending();
    EXPECT_EQ(join(stream, second), verdict::delete_pending);
    EXPECT_TRUE(file.leave(first).of_this);
}

TEST_F(open_protocol_test, stream_that_denies_deletion_conflicts_with_an_open_that_may_delete_the_file) {
    open(first);
    EXPECT_EQ(file.conflict_with_stream(shared_read), share_entries::conflict::committed);
    EXPECT_EQ(join(stream, second, shared_read), verdict::sharing_violation);
    constexpr sharing for_attributes{.access = access_mask::read_attributes, .share = share_access::none};
    EXPECT_EQ(join(stream, second, for_attributes), verdict::granted) << "it denies nothing";
    (void)stream.leave(second);
    EXPECT_EQ(join(stream, second), verdict::granted) << "it shares the deletion";
    (void)stream.leave(second);
    (void)file.leave(first);
    EXPECT_EQ(join(stream, second, shared_read), verdict::granted);
    (void)stream.leave(second);
}

TEST_F(open_protocol_test, stream_waits_for_a_create_that_may_delete_the_file) {
    EXPECT_EQ(join(first), verdict::granted);
    {
        waiting<open_protocol> blocked(stream, woken);
        EXPECT_EQ(stream.join(second, shared_read, blocked.place()), verdict::blocked);
        (void)file.leave(first);
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(join(stream, second, shared_read), verdict::granted);
    (void)stream.leave(second);
}

TEST_F(open_protocol_test, open_for_deletion_conflicts_with_a_stream_that_denies_it) {
    open(stream, first, shared_read);
    EXPECT_EQ(join(second, shares_all), verdict::sharing_violation);
    EXPECT_EQ(join(second, shared_write), verdict::granted) << "otherwise streams concern only themselves";
    (void)file.leave(second);
    (void)stream.leave(first);
    EXPECT_EQ(join(second, shares_all), verdict::granted);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, created_file_goes_with_a_create_that_fails_alone) {
    EXPECT_EQ(join(first), verdict::granted);
    EXPECT_TRUE(file.leave_created(first).of_this);

    open_protocol other;
    EXPECT_EQ(join(other, first), verdict::granted);
    EXPECT_EQ(join(other, second), verdict::granted);
    EXPECT_FALSE(other.leave_created(first).of_this);
    EXPECT_EQ(other.phase(), delete_phase::open);
    EXPECT_FALSE(other.leave(second).of_this);
}

TEST_F(open_protocol_test, join_waits_for_the_removal_of_a_file_whose_create_has_failed) {
    EXPECT_EQ(join(first), verdict::granted);
    EXPECT_TRUE(file.leave_created(first).of_this);
    name_right removal(granted);
    EXPECT_TRUE(file.begin_removal(removal));
    waiting<open_protocol> blocked(file, woken);
    EXPECT_EQ(file.join(second, shares_all, blocked.place()), verdict::blocked);
    file.end_removal(removal, true);
    EXPECT_TRUE(woken.is_set());
    EXPECT_EQ(join(second), verdict::gone);
}

TEST_F(open_protocol_test, interrupted_removal_of_a_file_whose_create_has_failed_leaves_the_file) {
    EXPECT_EQ(join(first), verdict::granted);
    name_right mark(granted);
    EXPECT_FALSE(file.mark(mark));
    EXPECT_TRUE(file.leave_created(first).of_this);
    name_right removal(woken);
    EXPECT_FALSE(file.begin_removal(removal));
    file.end_removal(removal, false);
    (void)file.unmark(mark);
    EXPECT_EQ(join(second), verdict::granted);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, removed_file_is_gone_for_requests_that_still_hold_it) {
    open(first);
    close_last(first);
    name_right removal(granted);
    EXPECT_TRUE(file.begin_removal(removal));
    EXPECT_EQ(file.phase(), delete_phase::removing);
    EXPECT_EQ(join(second), verdict::delete_pending);
    file.end_removal(removal, true);
    EXPECT_EQ(join(second), verdict::gone);
    EXPECT_EQ(join(stream, second), verdict::gone);
}

TEST_F(open_protocol_test, failed_removal_makes_the_file_accessible_again) {
    open(first);
    close_last(first);
    name_right removal(granted);
    EXPECT_TRUE(file.begin_removal(removal));
    file.end_removal(removal, false);
    EXPECT_EQ(join(second), verdict::granted);
    EXPECT_FALSE(file.leave(second).of_this);
}

TEST_F(open_protocol_test, mark_waits_for_joining_entries_and_blocks_new_ones) {
    name_right mark(granted);
    {
        waiting<open_protocol> blocked(file, woken);
        mark_during_a_create(mark, blocked);
        file.commit(first, shares_all);
        EXPECT_TRUE(granted.is_set());
        EXPECT_TRUE(mark.is_held());
        EXPECT_FALSE(woken.is_set()) << "it would be blocked again";
        EXPECT_FALSE(file.unmark(mark));
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(join(second), verdict::granted);
    (void)file.leave(first);
    (void)file.leave(second);
}

TEST_F(open_protocol_test, mark_waits_for_joining_entries_of_streams) {
    EXPECT_EQ(join(stream, first), verdict::granted);
    name_right mark(granted);
    EXPECT_FALSE(file.mark(mark));
    (void)stream.leave(first);
    EXPECT_TRUE(mark.is_held());
    EXPECT_FALSE(file.unmark(mark));
}

TEST_F(open_protocol_test, interrupted_mark_lets_joins_go_on) {
    name_right mark(granted);
    waiting<open_protocol> blocked(file, woken);
    mark_during_a_create(mark, blocked);
    EXPECT_FALSE(file.unmark(mark));
    EXPECT_TRUE(woken.is_set());
    (void)file.leave(first);
}

TEST_F(open_protocol_test, removal_waits_for_the_mark_before_it) {
    name_right mark(woken);
    name_right removal(granted);
    close_last_under_a_mark(mark, removal);
    EXPECT_EQ(file.phase(), delete_phase::delete_pending);
    EXPECT_FALSE(file.unmark(mark));
    EXPECT_TRUE(removal.is_held());
    EXPECT_EQ(file.phase(), delete_phase::removing);
    file.end_removal(removal, true);
}

TEST_F(open_protocol_test, removal_of_a_file_that_a_rename_has_replaced_finds_it_removed) {
    name_right mark(woken);
    name_right removal(granted);
    close_last_under_a_mark(mark, removal);
    EXPECT_TRUE(file.unmark(mark, true));
    EXPECT_TRUE(removal.is_held());
    EXPECT_EQ(file.phase(), delete_phase::removed);
    file.end_removal(removal, false);
    EXPECT_EQ(file.phase(), delete_phase::removed);
}

TEST_F(open_protocol_test, replaced_file_stays_accessible_while_it_is_open) {
    open(first);
    name_right mark(granted);
    EXPECT_TRUE(file.mark(mark));
    EXPECT_FALSE(file.unmark(mark, true));
    EXPECT_EQ(file.phase(), delete_phase::open);
    (void)file.leave(first);
}

TEST_F(open_protocol_test, marks_are_granted_in_order_of_arrival) {
    name_right one(woken);
    name_right two(granted);
    EXPECT_TRUE(file.mark(one));
    EXPECT_FALSE(stream.mark(two)) << "a stream rename marks the file";
    (void)file.unmark(one);
    EXPECT_TRUE(two.is_held());
    (void)stream.unmark(two);
    EXPECT_FALSE(file.is_marked());
}

TEST_F(open_protocol_test, check_of_a_directory_waits_for_creations_and_blocks_new_ones) {
    open(first);
    waiter unused(woken);
    EXPECT_EQ(file.begin_directory_change(unused), verdict::granted);
    directory_check check;
    {
        waiting<open_protocol> checking(file, granted);
        EXPECT_EQ(file.begin_check(check, checking.place()), verdict::blocked);
        waiting<open_protocol> creating(file, woken);
        EXPECT_EQ(file.begin_directory_change(creating.place()), verdict::blocked);
        file.end_directory_change();
        EXPECT_TRUE(granted.is_set());
    }
    EXPECT_EQ(file.begin_check(check, unused), verdict::granted);
    file.end_check(check, true);
    EXPECT_EQ(file.begin_directory_change(unused), verdict::delete_pending);
    EXPECT_TRUE(file.leave(first).of_this);
}

TEST_F(open_protocol_test, directory_that_is_not_empty_accepts_creations_again) {
    open(first);
    waiter unused(granted);
    directory_check check;
    EXPECT_EQ(file.begin_check(check, unused), verdict::granted);
    waiting<open_protocol> creating(file, woken);
    EXPECT_EQ(file.begin_directory_change(creating.place()), verdict::blocked);
    file.end_check(check, false);
    EXPECT_TRUE(woken.is_set());
    EXPECT_EQ(file.begin_directory_change(creating.place()), verdict::granted);
    file.end_directory_change();
    (void)file.leave(first);
}

TEST_F(open_protocol_test, deletion_on_close_prevails_over_a_check) {
    open(first);
    open(second);
    waiter unused(granted);
    directory_check check;
    EXPECT_EQ(file.begin_check(check, unused), verdict::granted);
    file.set_delete_pending();
    (void)file.leave(second);
    EXPECT_FALSE(file.end_check(check, false));
    EXPECT_EQ(file.phase(), delete_phase::delete_pending);
    EXPECT_TRUE(file.leave(first).of_this);
}

TEST_F(open_protocol_test, check_is_outdated_once_a_deletion_has_been_set_and_cleared) {
    open(first);
    waiter unused(granted);
    directory_check check;
    EXPECT_EQ(file.begin_check(check, unused), verdict::granted);
    file.set_delete_pending();
    file.clear_delete_pending();
    EXPECT_EQ(file.begin_directory_change(unused), verdict::granted) << "a name is created";
    file.end_directory_change();
    EXPECT_FALSE(file.end_check(check, false));
    (void)file.leave(first);
}

TEST_F(open_protocol_test, one_check_waits_for_the_other) {
    open(first);
    waiter unused(granted);
    directory_check mine;
    directory_check other;
    EXPECT_EQ(file.begin_check(mine, unused), verdict::granted);
    {
        waiting<open_protocol> blocked(file, woken);
        EXPECT_EQ(file.begin_check(other, blocked.place()), verdict::blocked);
        file.end_check(other, true);
        EXPECT_EQ(file.phase(), delete_phase::checking) << "the check of another request goes on";
        file.end_check(mine, false);
        EXPECT_TRUE(woken.is_set());
    }
    EXPECT_EQ(file.begin_check(other, unused), verdict::granted);
    file.end_check(other, false);
    (void)file.leave(first);
}

}  // namespace
}  // namespace sluice::smb::server

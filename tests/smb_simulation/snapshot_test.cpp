#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The statistics of a server.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

class snapshot : public served {
protected:
    [[nodiscard]] compliant_client& client() noexcept { return *first_; }
    [[nodiscard]] server::server_snapshot totals() {
        return where_.server->snapshot({.has_totals = true, .has_open_numbers = true});
    }
    [[nodiscard]] std::vector<server::open_status> opens() {
        const auto numbers = totals().open_numbers;
        return where_.server->snapshot({.has_names = true, .opens = numbers}).opens;
    }
    void lock(const wire::file_id& of, std::uint64_t offset, wire::lock_flags how) {
        const wire::raw_lock_element element =
            wire::encode_lock_element({.offset_bytes = offset, .length_bytes = 5, .flags = how});
        const wire::lock_args args{.file = of, .elements = wire::lock_list(std::span(&element, 1))};
        ASSERT_EQ(client().call(command::lock, args).status(), nt_status::success);
    }
};

TEST_F(snapshot, counts_open_objects_and_forgets_closed_ones) {
    const server::server_snapshot before = totals();
    EXPECT_EQ(before.in_use.connections, 1U);
    EXPECT_EQ(before.in_use.connections_without_session, 0U);
    EXPECT_EQ(before.in_use.sessions, 1U);
    EXPECT_EQ(before.in_use.trees_of_session, 1U);
    EXPECT_EQ(before.in_use.opens, 0U);
    const wire::file_id file = client().create("one").file;
    EXPECT_EQ(totals().in_use.opens, 1U);
    EXPECT_EQ(totals().in_use.opens_of_session, 1U);
    EXPECT_EQ(totals().files, 1U);
    EXPECT_EQ(totals().open_numbers.size(), 1U);
    EXPECT_TRUE(where_.server->snapshot({.has_totals = true}).open_numbers.empty());
    ASSERT_EQ(client().call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    EXPECT_EQ(totals().in_use.opens, 0U);
    EXPECT_EQ(totals().files, 0U);
}

TEST_F(snapshot, has_the_name_the_caching_and_the_locks_of_an_open) {
    wire::create_args how = compliant_client::for_everything();
    how.oplock_level = wire::oplock_level::batch;
    const wire::file_id file = client().create("one", how).file;
    lock(file, 10, wire::lock_flags::exclusive | wire::lock_flags::fail_immediately);
    lock(file, 100, wire::lock_flags::shared | wire::lock_flags::fail_immediately);
    const auto all = opens();
    ASSERT_EQ(all.size(), 1U);
    const server::open_status& one = all.front();
    EXPECT_EQ(one.share, "files");
    EXPECT_EQ(one.path, "one");
    EXPECT_EQ(one.session, totals().session_ids.front());
    EXPECT_EQ(one.caching, server::caching_kind::oplock);
    EXPECT_EQ(one.locks, 2U);
    ASSERT_EQ(one.first_locks.size(), 2U);
    EXPECT_EQ(one.first_locks[0].offset, 10U);
    EXPECT_TRUE(one.first_locks[0].is_exclusive);
    EXPECT_EQ(one.first_locks[1].length, 5U);
    EXPECT_FALSE(one.first_locks[1].is_exclusive);
}

TEST_F(snapshot, has_the_user_and_the_connections_of_a_session) {
    const auto ids = totals().session_ids;
    const auto sessions = where_.server->snapshot({.sessions = ids}).sessions;
    ASSERT_EQ(sessions.size(), 1U);
    EXPECT_EQ(sessions.front().user, "u");
    EXPECT_EQ(sessions.front().state, "valid");
    EXPECT_EQ(sessions.front().shares, std::vector<std::string>{"files"});
    ASSERT_EQ(sessions.front().channels.size(), 1U);
    EXPECT_EQ(sessions.front().channels.front().peer, "127.0.0.1:1");
}

TEST_F(snapshot, skips_objects_that_ended_after_they_were_listed) {
    const wire::file_id file = client().create("one").file;
    const auto numbers = totals().open_numbers;
    ASSERT_EQ(numbers.size(), 1U);
    ASSERT_EQ(client().call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    EXPECT_TRUE(where_.server->snapshot({.opens = numbers}).opens.empty());
}

TEST_F(snapshot, counts_requests_by_command_and_failures_among_them) {
    const server::traffic before = totals().traffic;
    EXPECT_EQ(before.failures, 0U) << "a logon in several steps has not failed";
    ASSERT_EQ(client().call(command::close, wire::close_args{.file = {}}).status(), nt_status::file_closed);
    const server::traffic after = totals().traffic;
    EXPECT_EQ(after.of(command::close), before.of(command::close) + 1);
    EXPECT_EQ(after.failures, 1U);
}

TEST(limit_rows, have_each_limit_once_and_none_is_exceeded_without_clients) {
    const auto rows = smb::server::limit_rows(smb::server::server_bounds::of({}));
    std::vector<std::string_view> names;
    for (const server::limit_row& row : rows) {
        names.push_back(row.name);
        EXPECT_LE(row.in_use.value_or(0), row.limit) << row.name;
    }
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace sluice::smb_simulation

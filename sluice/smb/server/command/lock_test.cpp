#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// Locks that wait, and their outcome when the open or connection they belong to ends.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::lock_flags;
using wire::nt_status;

class locks : public served {
protected:
    struct span_of_bytes {
        std::uint64_t offset = 0;
        std::uint64_t length = 1;
    };

    [[nodiscard]] wire::file_id open_file() { return client().create("locked").file; }
    nt_status lock(const wire::file_id& of, span_of_bytes where, lock_flags how) {
        const wire::raw_lock_element element = encoded(where, how);
        return client().call(command::lock, args_of(of, std::span(&element, 1))).status();
    }
    // Requests a range that another open has locked. Returns the message ID.
    std::uint64_t wait_for_lock(const wire::file_id& of, span_of_bytes where) {
        const wire::raw_lock_element element = encoded(where, lock_flags::exclusive);
        return client().send(command::lock, args_of(of, std::span(&element, 1)));
    }
    [[nodiscard]] static wire::raw_lock_element encoded(span_of_bytes where, lock_flags how) {
        return wire::encode_lock_element(
            {.offset_bytes = where.offset, .length_bytes = where.length, .flags = how});
    }
    [[nodiscard]] static wire::lock_args args_of(const wire::file_id& of,
                                                 std::span<const wire::raw_lock_element> elements) {
        return {.file = of, .elements = wire::lock_list(elements)};
    }
    // Locks ranges after those that the tests lock one by one.
    void lock_many(const wire::file_id& of, std::size_t count) {
        std::vector<wire::raw_lock_element> some;
        for (std::size_t i = 0; i != count; ++i) {
            some.push_back(encoded({.offset = 100 + i}, at_once));
            if (some.size() != 128 and i + 1 != count) continue;
            ASSERT_EQ(client().call(command::lock, args_of(of, some)).status(), nt_status::success);
            some.clear();
        }
    }
    nt_status close(const wire::file_id& of) {
        return client().call(command::close, wire::close_args{.file = of}).status();
    }

    static constexpr lock_flags at_once = lock_flags::exclusive | lock_flags::fail_immediately;
};

TEST_F(locks, that_wait_are_granted_when_conflicting_locks_are_released) {
    const wire::file_id first = open_file();
    const wire::file_id second = open_file();
    ASSERT_EQ(lock(first, {0, 10}, at_once), nt_status::success);
    const std::uint64_t waiting = wait_for_lock(second, {5, 10});
    EXPECT_FALSE(client().is_answered(waiting));
    EXPECT_EQ(lock(second, {12, 1}, at_once), nt_status::success) << "a waiting lock conflicts with no other";
    ASSERT_EQ(lock(first, {0, 10}, lock_flags::unlock), nt_status::success);
    EXPECT_FALSE(client().is_answered(waiting)) << "the later lock conflicts";
    ASSERT_EQ(lock(second, {12, 1}, lock_flags::unlock), nt_status::success);
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::success);
    EXPECT_EQ(lock(first, {14, 1}, at_once), nt_status::lock_not_granted);
}

TEST_F(locks, that_wait_end_with_their_open_and_later_ones_are_granted) {
    const wire::file_id first = open_file();
    const wire::file_id second = open_file();
    const wire::file_id third = open_file();
    ASSERT_EQ(lock(first, {0, 10}, at_once), nt_status::success);
    const std::uint64_t of_second = wait_for_lock(second, {0, 10});
    const std::uint64_t of_third = wait_for_lock(third, {0, 10});
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(client().answer_to(of_second).status(), nt_status::range_not_locked);
    EXPECT_FALSE(client().is_answered(of_third));
    EXPECT_EQ(close(first), nt_status::success);
    EXPECT_EQ(client().answer_to(of_third).status(), nt_status::success);
}

TEST_F(locks, that_were_cancelled_leave_nothing_behind) {
    const wire::file_id first = open_file();
    const wire::file_id second = open_file();
    ASSERT_EQ(lock(first, {0, 10}, at_once), nt_status::success);
    const std::uint64_t waiting = wait_for_lock(second, {0, 10});
    client().cancel(client().async_id_of(waiting));
    EXPECT_EQ(client().answer_to(waiting).status(), nt_status::cancelled);
    ASSERT_EQ(lock(first, {0, 10}, lock_flags::unlock), nt_status::success);
    EXPECT_EQ(lock(first, {0, 10}, at_once), nt_status::success);
    EXPECT_EQ(lock(second, {0, 10}, lock_flags::unlock), nt_status::range_not_locked);
}

TEST_F(locks, that_wait_count_towards_the_limit_of_their_open) {
    const wire::file_id holder = open_file();
    const wire::file_id greedy = open_file();
    ASSERT_EQ(lock(holder, {0, 10}, at_once), nt_status::success);
    lock_many(greedy, server::limits::locks_per_open_max - 1);
    const std::uint64_t last = wait_for_lock(greedy, {0, 1});
    EXPECT_FALSE(client().is_answered(last));
    EXPECT_EQ(lock(greedy, {5, 1}, lock_flags::exclusive), nt_status::insufficient_resources);
    ASSERT_EQ(close(holder), nt_status::success);
    EXPECT_EQ(client().answer_to(last).status(), nt_status::success);
    EXPECT_EQ(lock(greedy, {5, 1}, at_once), nt_status::insufficient_resources);
}

TEST_F(locks, that_wait_end_when_the_client_disconnects) {
    const wire::file_id first = open_file();
    const wire::file_id second = open_file();
    ASSERT_EQ(lock(first, {0, 10}, at_once), nt_status::success);
    ASSERT_EQ(lock(second, {20, 10}, at_once), nt_status::success);
    EXPECT_FALSE(client().is_answered(wait_for_lock(second, {0, 10})));
    EXPECT_FALSE(client().is_answered(wait_for_lock(first, {20, 10})));
    // Each waits for the other: only the end of both lets the world stop.
}

TEST_F(locks, of_several_ranges_are_granted_all_or_none) {
    const wire::file_id first = open_file();
    const wire::file_id second = open_file();
    ASSERT_EQ(lock(first, {20, 1}, at_once), nt_status::success);
    const std::array both{encoded({0, 1}, at_once), encoded({20, 1}, at_once)};
    EXPECT_EQ(client().call(command::lock, args_of(second, both)).status(), nt_status::lock_not_granted);
    EXPECT_EQ(lock(first, {0, 1}, at_once), nt_status::success);
}

TEST_F(locks, that_make_no_sense_are_refused) {
    const wire::file_id file = open_file();
    EXPECT_EQ(lock(file, {0, 1}, lock_flags::shared | lock_flags::exclusive), nt_status::invalid_parameter);
    EXPECT_EQ(lock(file, {0, 1}, lock_flags::none), nt_status::invalid_parameter);
    EXPECT_EQ(lock(file, {~0ULL, 2}, at_once), nt_status::invalid_lock_range);
    EXPECT_EQ(lock(file, {0, 1}, lock_flags::unlock), nt_status::range_not_locked);
    const std::array waiting{encoded({0, 1}, lock_flags::exclusive), encoded({5, 1}, lock_flags::exclusive)};
    EXPECT_EQ(client().call(command::lock, args_of(file, waiting)).status(), nt_status::invalid_parameter)
        << "only a single lock may wait";
}

TEST_F(locks, of_opens_without_bytes_to_lock_are_refused) {
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    EXPECT_EQ(lock(client().create("d", how).file, {0, 1}, at_once), nt_status::invalid_device_request);
    how.options = wire::create_options::none;
    how.desired_access = wire::access_mask::read_attributes;
    EXPECT_EQ(lock(client().create("f", how).file, {0, 1}, at_once), nt_status::access_denied);
    const wire::file_id closed = open_file();
    ASSERT_EQ(close(closed), nt_status::success);
    EXPECT_EQ(lock(closed, {0, 1}, at_once), nt_status::file_closed);
}

}  // namespace
}  // namespace sluice::smb_simulation
